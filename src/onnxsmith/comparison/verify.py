"""Runs two computations side by side on generated inputs and says whether they agree.

The reference decides which sizes make sense: a proposal that it refuses is passed over and counted. One that it takes
and the candidate refuses, or answers differently, is a difference. Every symbolic dimension is tried at several sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from onnxsmith.clock import advance
from onnxsmith.comparison.allowance import Allowance
from onnxsmith.comparison.altered import altered
from onnxsmith.comparison.arbiter import Arbiter
from onnxsmith.comparison.checks import Checks
from onnxsmith.comparison.explore import Explorer, Plan, Run, answer, tried
from onnxsmith.comparison.noise import Noise
from onnxsmith.comparison.power import measured
from onnxsmith.comparison.probe import Probe
from onnxsmith.comparison.rounding import Rounding
from onnxsmith.comparison.tensors import difference
from onnxsmith.comparison.unreached import unreached
from onnxsmith.feeds.generate import Feed
from onnxsmith.model.graph.signature import Signature
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.report.parts.verification import OutputCheck, Power, Verification
from onnxsmith.runtimes.base import Outputs, Session

_BEYOND = {"runtime/timeout", "runtime/memory"}
"""What a machine has too little of decides nothing of the candidate."""
_DRAWS = 20
"""Runs after which an output that never changed is not drawn: a coin may fall on one side a few times in a row."""


@dataclass(frozen=True)
class Side:
    """One of the two: a session and what the report calls it."""

    name: str
    session: Session


@dataclass(frozen=True)
class Evidence:
    """What a comparison can ask beside the two sides.

    `noise` knows how far rounding alone moves the reference's outputs, `coarser` how many times coarser the candidate
    computes each, by the count; `faults` is the candidate, to plant faults in, and `original` the reference, where the
    two may hold other weights; `arbiter` computes in float64; `elsewhere` says why the reference itself is not taken
    where the candidate runs, where that is another runtime; `same` where both sides are one model, and
    `identical` where it is run in one way, so that there is nothing to tell apart.
    """

    noise: Noise | None = None
    coarser: Mapping[str, float] = field(default_factory=dict)
    faults: Probe | None = None
    original: Probe | None = None
    arbiter: Arbiter | None = None
    elsewhere: Callable[[Feed], Problem | None] = lambda _: None
    same: bool = False
    identical: bool = False


def verify(
    reference: Side,
    candidate: Side,
    plan: Plan,
    roundings: Mapping[str, Rounding],
    evidence: Evidence | None = None,
    on_worst: Callable[[Feed], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> Verification:
    """Compares `candidate` with `reference`. `roundings` gives the largest tolerance of each output by name; `on_worst`
    gets the input on which they are furthest apart, `on_run` each run of the reference.

    Raises:
        OnnxsmithError: `verify/no-valid-input` when the reference takes none of the proposed inputs;
            `verify/nothing-compared` when none was given and none is generated; `verify/nondeterministic` when it
            answers the same input differently; `runtime/died` or `runtime/timeout` when the reference is gone.
    """
    evidence = evidence or Evidence()
    mismatch = interface_mismatch(reference.session.signature, candidate.session.signature)
    explorer = Explorer(reference.session, plan, roundings)
    taken = list(explorer.runs())
    if not taken:
        raise problem(
            "verify/nothing-compared",
            "there is no input to compare on",
            where=f"{reference.name} and {candidate.name}",
            fix="give one: --input inputs.npz",
        )
    checks = _checks(reference.session, candidate.session, explorer, roundings, evidence)
    runs = list(_answered(taken, explorer, candidate.session, checks, evidence.elsewhere, on_run))
    for name in sorted(explorer.drawn):
        if runs and not _varies(candidate.session, runs[0], name):
            checks.refuse(name, "it is drawn anew in every run of the reference, and always the same here", "all runs")
    checks.judge_movement(runs)
    if on_worst is not None and checks.worst is not None:
        on_worst(checks.worst)
    results = checks.results()
    agrees = not mismatch and all(output.equal for output in results)
    power, unmeasured, weak = _power(evidence.faults, runs, checks, results, plan.seed) if agrees else (None, (), ())
    is_asked = any(one.given is not None for one in roundings.values())
    unsure = (
        *(() if any(not run.left_out for run in taken) else (f"{candidate.name} takes no input that was tried",)),
        *checks.undecided,
        *(_hidden(evidence, runs, checks, asked=is_asked) if agrees else ()),
        *(() if evidence.identical or is_asked else weak),
    )
    return Verification(
        reference=reference.name,
        candidate=candidate.name,
        verified=True,
        equal=agrees and not unsure,
        runs=tuple(run.feed.label for run in runs),
        sizes=tried(runs),
        refused=explorer.refused,
        outputs=results,
        notes=(*mismatch, *checks.notes, *explorer.notes, *unmeasured),
        untried=(*explorer.untried, *checks.untried, *(() if checks.undecided else _nothing_but_shapes(results))),
        power=power,
        unsure=unsure if agrees else (),
    )


def _checks(
    reference: Session,
    candidate: Session,
    explorer: Explorer,
    roundings: Mapping[str, Rounding],
    evidence: Evidence,
) -> Checks:
    """What takes the candidate's answers in."""
    return Checks(
        reference.signature,
        roundings,
        drawn=explorer.repeated,
        unsteady=lambda run: explorer.unsteady(run) | explorer.unsteady_in(candidate, run),
        arbiter=evidence.arbiter,
        allowance=Allowance(roundings, evidence.noise, evidence.coarser, same=evidence.same),
    )


def _answered(
    runs: Sequence[Run],
    explorer: Explorer,
    session: Session,
    checks: Checks,
    elsewhere: Callable[[Feed], Problem | None],
    on_run: Callable[[Run], None] | None,
) -> Iterator[Run]:
    """The runs that count, each with the candidate's answer taken in."""
    for index, run in enumerate(runs):
        advance("verify", index, len(runs))
        if explorer.lets_go(run, session):
            continue
        if on_run is not None:
            on_run(run)
        try:
            outputs, refusal = answer(session, run.feed)
        except OnnxsmithError as error:
            if error.problem.id in _BEYOND and run.generated:
                checks.give_up(run, error.problem)
                return  # each wait is a long one
            if error.problem.id != "runtime/died" or not run.generated:
                raise
            outputs, refusal = None, error.problem
        if refusal is not None and refusal.id in _BEYOND:
            checks.give_up(run, refusal)
            continue
        if refusal is not None and run.generated and elsewhere(run.feed) is not None:
            explorer.leave_out(run, session.provider, refusal)
            continue
        checks.add(run, outputs, refusal)
        yield run


def _power(
    faults: Probe | None, runs: Sequence[Run], checks: Checks, results: Sequence[OutputCheck], seed: int
) -> tuple[Power | None, tuple[str, ...], tuple[str, ...]]:
    """What the check would have noticed; a note where that cannot be known; why it is too little, where it is."""
    if faults is None or not any(output.compared and not output.drawn for output in results):
        return None, (), ()
    found = measured(faults, runs, checks, seed=seed)
    if found is None:
        said = "what the check would have noticed is not known: its runtime takes no weights as inputs"
        return None, () if checks.exact else (said,), ()
    weak = "" if checks.exact and found.kind == "inputs" else found.shortcoming()
    return found, (), (weak,) if weak else ()


def _hidden(evidence: Evidence, runs: Sequence[Run], checks: Checks, *, asked: bool) -> tuple[str, ...]:
    """What the two hold or compute otherwise and no input shows; what a node computes within a tolerance that was
    `asked` for counts for nothing."""
    if evidence.original is None or evidence.faults is None:
        return ()
    plainly = _apart_plainly(evidence.original, evidence.faults, runs, checks)
    if plainly:
        return (plainly,)
    found = unreached(evidence.original, evidence.faults, runs, checks)
    nodes = () if asked else altered(evidence.original, evidence.faults, runs, checks)
    return (*((found,) if found else ()), *nodes)


def _apart_plainly(original: Probe, candidate: Probe, runs: Sequence[Run], checks: Checks) -> str:
    """What to say where the two differ as probes run them, with the runtime's optimisations off: a fused kernel may
    pass over what a file says."""
    for run in runs:
        ours, theirs = original.plain(run.feed), candidate.plain(run.feed)
        name = checks.differs(run, ours, theirs) if ours is not None and theirs is not None else ""
        if name:
            return f"with the runtime's optimisations off, output {name!r} differs on {run.feed.label}"
    return ""


def _nothing_but_shapes(results: Sequence[OutputCheck]) -> tuple[str, ...]:
    """What a headline says where no output had a value to compare."""
    if any(output.compared or output.reason for output in results) or not results:
        return ()
    drawn = all(output.drawn for output in results)
    what = "is drawn at random" if drawn else "is empty or NaN on every input"
    return (f"every output {what}: only dtypes, shapes and the places of NaN were compared",)


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
