"""Runs two computations side by side on generated inputs and says whether they agree.

The reference decides which sizes make sense: a proposal that it refuses is passed over and counted. One that it takes
and the candidate refuses, or answers differently, is a difference. Every symbolic dimension is tried at several sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from onnxsmith.clock import advance
from onnxsmith.comparison.arbiter import Arbiter
from onnxsmith.comparison.checks import Checks
from onnxsmith.comparison.explore import Explorer, Plan, Run, answer, tried
from onnxsmith.comparison.rounding import Rounding
from onnxsmith.comparison.tensors import difference
from onnxsmith.feeds.generate import Feed
from onnxsmith.model.signature import Signature
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.report.parts.verification import Verification
from onnxsmith.runtimes.base import Outputs, Session

_DRAWS = 20
"""Runs after which an output that never changed is not drawn: a coin may fall on one side a few times in a row."""


@dataclass(frozen=True)
class Side:
    """One of the two: a session and what the report calls it."""

    name: str
    session: Session


def verify(
    reference: Side,
    candidate: Side,
    plan: Plan,
    roundings: Mapping[str, Rounding],
    arbiter: Arbiter | None = None,
    on_worst: Callable[[Feed], None] | None = None,
) -> Verification:
    """Holds `candidate` to `reference`. `roundings` gives the tolerance of each output by name; `arbiter` is asked
    where the two differ by more; `on_worst` gets the input on which they are furthest apart.

    Raises:
        OnnxsmithError: `verify/no-valid-input` when the reference takes none of the proposed inputs;
            `verify/nondeterministic` when it answers the same input differently; `verify/nothing-compared` when no
            output had an element to compare though one should have; `runtime/died` or `runtime/timeout` when a side is
            gone.
    """
    mismatch = interface_mismatch(reference.session.signature, candidate.session.signature)
    explorer = Explorer(reference.session, plan, roundings)
    runs = list(explorer.runs())
    checks = Checks(reference.session.signature, roundings, drawn=explorer.repeated, arbiter=arbiter)
    for index, run in enumerate(runs):
        advance("verify", index, len(runs))
        outputs, refusal = answer(candidate.session, run.feed)
        checks.add(run, outputs, refusal)
    for name in sorted(explorer.drawn):
        if runs and not _varies(candidate.session, runs[0], name):
            checks.refuse(name, "it is drawn anew in every run of the reference, and always the same here", "all runs")
    checks.judge_movement(runs)
    if on_worst is not None and checks.worst is not None:
        on_worst(checks.worst)
    results = checks.results()
    without = {port.name for port in candidate.session.signature.outputs if plan.empty and 0 in (port.shape or ())}
    to_compare = [output for output in results if output.name not in explorer.drawn | without]
    if to_compare and not any(output.compared or output.reason for output in to_compare):
        raise _nothing_compared(reference, candidate)
    return Verification(
        reference=reference.name,
        candidate=candidate.name,
        verified=True,
        equal=not mismatch and all(output.equal for output in results),
        runs=tuple(run.feed.label for run in runs),
        sizes=tried(runs),
        refused=explorer.refused,
        outputs=results,
        notes=(*mismatch, *explorer.notes),
        untried=explorer.untried,
    )


def _nothing_compared(reference: Side, candidate: Side) -> OnnxsmithError:
    return problem(
        "verify/nothing-compared",
        "not one element could be compared",
        where=f"{reference.name} and {candidate.name}",
        why="every output was empty or NaN on every input",
        fix="give an input that the model is made for: --input name=file.npz",
    )


def _varies(session: Session, run: Run, name: str) -> bool:
    """Whether an output changes from one run to the next on the same input."""
    first, _ = answer(session, run.feed)
    for _ in range(_DRAWS):
        again, _ = answer(session, run.feed)
        if first is None or again is None or name not in again or difference(first[name], again[name], 0.0).reason:
            return True
    return _is_empty(first, name)


def _is_empty(outputs: Outputs | None, name: str) -> bool:
    return outputs is not None and not isinstance(outputs[name], list) and np.asarray(outputs[name]).size == 0


def interface_mismatch(reference: Signature, candidate: Signature) -> tuple[str, ...]:
    """What a caller of the reference would trip over in the candidate: names, order, dtypes, frozen axes."""
    found: list[str] = []
    for what, ours, theirs in (
        ("input", reference.inputs, candidate.inputs),
        ("output", reference.outputs, candidate.outputs),
    ):
        names, other = [port.name for port in ours], [port.name for port in theirs]
        if names != other:
            found.append(f"{what}s are {', '.join(other) or 'none'}; expected {', '.join(names) or 'none'}")
            continue
        for a, b in zip(ours, theirs, strict=True):
            if (a.dtype, a.kind) != (b.dtype, b.kind) and "undefined" not in (a.dtype, b.dtype):
                found.append(f"{what} {a.name!r} is {b.kind} {b.dtype}; expected {a.kind} {a.dtype}")
            if what == "input" and a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
                frozen = [
                    f"axis {axis} of input {a.name!r} is fixed to {theirs_}; expected dynamic {ours_}"
                    for axis, (ours_, theirs_) in enumerate(zip(a.shape, b.shape, strict=True))
                    if isinstance(theirs_, int) and isinstance(ours_, str)
                ]
                found += frozen
    return tuple(found)
