"""Runs the candidate over several steps with its own state, and judges how the difference develops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from onnxsmith.base.clock import advance
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import OutputCheck, StatePair, Step, Steps, Verification
from onnxsmith.comparison.outputs.reference_steps import Rolled
from onnxsmith.comparison.outputs.state_names import Fed
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.arbiter import as_near
from onnxsmith.verification.explore import Run
from onnxsmith.verification.value_comparison import Difference, difference

Met = Mapping[str, Difference]


@dataclass(frozen=True)
class Own:
    """A step in which the candidate has its own state. `output` is the output furthest from the reference's, with its
    difference. `reason` says why rounding over that many steps does not explain it; "" if it does."""

    output: str
    difference: float
    reason: str


def compared(
    rolled: Rolled,
    met: Mapping[str, Met],
    part: Verification,
    candidate: Session,
    pairs: Sequence[Fed],
    exact: Callable[[], Session | None],
) -> tuple[Steps, Verification]:
    """Returns the report part on the steps, and the verification, which is different if the state drifts. `met` has, by
    label, the differences of each step from the reference's state. `exact` makes the reference in float64."""
    checks = {output.name: output for output in part.outputs}
    first = next((label for label in _labels(rolled) if any(one.reason for one in met.get(label, {}).values())), "")
    own, failed = _own(rolled, candidate, pairs, checks)
    drift, is_fault = "", False
    beyond = next((at for at, one in enumerate(own) if one.reason), None)
    # An error within a step would explain a drift, so a drift is judged only without one.
    if failed and not first:
        drift, is_fault = f"with its own state, {failed}", True
    elif beyond is not None and not first:
        drift, is_fault = _drift(rolled, own, beyond, candidate, pairs, exact)
    steps = Steps(
        tuple(_pair(pair, rolled) for pair in pairs),
        tuple(_step(label, met.get(label, {}), own[at] if at < len(own) else None) for at, label in _numbered(rolled)),
        first,
        drift or _said(own, rolled),
        is_fault,
        rolled.notes,
    )
    return steps, _with_drift(part, own[beyond] if beyond is not None else None, drift) if is_fault else part


def _labels(rolled: Rolled) -> list[str]:
    return [feed.label for feed in rolled.feeds]


def _numbered(rolled: Rolled) -> Iterator[tuple[int, str]]:
    return enumerate(_labels(rolled))


def _chained(session: Session, rolled: Rolled, pairs: Sequence[Fed]) -> Iterator[Outputs]:
    """Yields the outputs of each step with the session's own state.

    Raises:
        OnnxsmithError: the error of the first step that the session refuses.
    """
    outputs: Outputs = {}
    for at, feed in enumerate(rolled.feeds):
        advance("steps", at, len(rolled.feeds))
        state = {pair.input: outputs[pair.output] for pair in pairs} if at and at not in rolled.given else {}
        outputs = session.run({**feed.values, **state})
        yield outputs


def _own(
    rolled: Rolled, candidate: Session, pairs: Sequence[Fed], checks: Mapping[str, OutputCheck]
) -> tuple[list[Own], str]:
    """Returns the steps with the candidate's own state, as far as they run, and why they ended early."""
    found: list[Own] = []
    since = 0
    try:
        for at, theirs in enumerate(_chained(candidate, rolled, pairs)):
            since = 1 if at in rolled.given else since + 1
            found.append(_furthest(rolled.outputs[at], theirs, checks, since))
    except OnnxsmithError as error:
        return found, f"the candidate refuses {_labels(rolled)[len(found)]}: {error.problem.what}"
    return found, ""


def _furthest(ours: Outputs, theirs: Outputs, checks: Mapping[str, OutputCheck], since: int) -> Own:
    """Returns the output that is furthest off. Rounding may add up over the `since` steps after both had the same
    state."""
    ranked = []
    for name, value in ours.items():
        check = checks.get(name)
        if check is None or check.drawn or name not in theirs:
            continue
        apart = difference(value, theirs[name], check.tolerance * since, check.floor * since)
        ranked.append(((bool(apart.reason), apart.worst_rel), Own(name, apart.worst_rel, apart.reason)))
    return max(ranked, key=lambda one: one[0])[1] if ranked else Own("", 0.0, "")


def _drift(
    rolled: Rolled,
    own: Sequence[Own],
    beyond: int,
    candidate: Session,
    pairs: Sequence[Fed],
    exact: Callable[[], Session | None],
) -> tuple[str, bool]:
    """Judges a difference with the own state, if every single step agrees from the reference's state. It is growing
    rounding if the reference in float64 is as far from the reference as from the candidate. Otherwise small errors add
    up."""
    label, one = _labels(rolled)[beyond], own[beyond]
    said = (
        f"with its own state, the candidate differs by {one.difference:.2g} of the scale in {label}, output "
        f"{one.output}"
    )
    truth = _exact(rolled, pairs, beyond, exact)
    if truth is None:
        return (
            (
                f"{said}: each step adds no more than rounding explains, and no run in float64 could show "
                "whether this is rounding"
            ),
            False,
        )
    theirs = next(outputs for at, outputs in enumerate(_chained(candidate, rolled, pairs)) if at == beyond)
    if as_near(truth[one.output], rolled.outputs[beyond][one.output], theirs[one.output]):
        return f"{said}: this is rounding that grows, because the reference is as far from float64", False
    return f"{said}, and the reference is nearer to float64: small errors of each step add up", True


def _exact(rolled: Rolled, pairs: Sequence[Fed], beyond: int, exact: Callable[[], Session | None]) -> Outputs | None:
    """Returns the outputs of one step of the reference in float64, with its own state; None if it does not run."""
    try:
        session = exact()
        if session is None:
            return None
        with closing(session):
            found = _chained(session, rolled, pairs)
            return next(outputs for at, outputs in enumerate(found) if at == beyond)
    except (OnnxsmithError, KeyError):
        return None


def _said(own: Sequence[Own], rolled: Rolled) -> str:
    if not own:
        return ""
    at = max(range(len(own)), key=lambda number: (bool(own[number].reason), own[number].difference))
    far, label = own[at].difference, _labels(rolled)[at]
    if not far and not own[at].reason:
        return "with its own state, the candidate returns bit-identical outputs"
    return f"with its own state, the candidate differs by at most {far:.2g} of the scale, in {label}"


def _step(label: str, met: Met, own: Own | None) -> Step:
    name, worst = max(met.items(), key=lambda one: (bool(one[1].reason), one[1].worst_rel), default=("", Difference()))
    far = np.inf if worst.reason and not worst.worst_rel else worst.worst_rel
    return Step(
        label, name, float(far), worst.reason, None if own is None else own.difference, own.output if own else ""
    )


def _pair(pair: Fed, rolled: Rolled) -> StatePair:
    value = rolled.feeds[0].values.get(pair.input)
    if not isinstance(value, np.ndarray):
        return StatePair(pair.input, pair.output, "", "an empty sequence" if isinstance(value, list) else "nothing")
    kind = f"{value.dtype}[{','.join(map(str, value.shape))}]"
    how = "empty" if not value.size else "zeros" if not value.any() else "given"
    return StatePair(pair.input, pair.output, "", f"{how} {kind}")


def _with_drift(part: Verification, own: Own | None, drift: str) -> Verification:
    """Returns the verification in which the drifting output is different."""
    name = own.output if own is not None else part.outputs[0].name
    outputs = tuple(
        replace(one, equal=False, reason=drift, where="the last steps") if one.name == name else one
        for one in part.outputs
    )
    return replace(part, equal=False, unsure=(), outputs=outputs)


class Recorder:
    """Collects the differences of each run of a comparison. `differing` are the runs on given inputs with a
    difference."""

    def __init__(self) -> None:
        self.met: dict[str, Met] = {}
        self.differing: list[Run] = []

    def __call__(self, run: Run, found: Met) -> None:
        """Adds a run and the difference of each output."""
        if run.generated:
            return
        self.met[run.feed.label] = found
        if any(one.reason for one in found.values()):
            self.differing.append(run)
