"""Runs two computations side by side on generated inputs and says whether they agree.

Every symbolic dimension is tried at several sizes. The reference decides which sizes make sense: a generated input that
the reference refuses is skipped and counted. If the reference accepts an input and the candidate refuses it or answers
differently, the sides differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from onnxsmith.base.clock import advance
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.verification import OutputCheck, Power, Verification
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.allowance import Allowance
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.branch_coverage import Sides, Untaken
from onnxsmith.verification.budget import Budget
from onnxsmith.verification.count_runs import counts_tried
from onnxsmith.verification.detection_power import measured
from onnxsmith.verification.explore import Explorer, Plan, Run, answer, tried
from onnxsmith.verification.free_values import Free
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.noise import Noise
from onnxsmith.verification.output_checks import Checks
from onnxsmith.verification.output_declarations import Declarations
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.rounding import Rounding, quantises_values
from onnxsmith.verification.value_comparison import Difference, difference

_BEYOND = {"runtime/timeout", "runtime/memory"}
"""Names the problems that are limits of the machine and decide nothing about the candidate."""
_DRAWS = 20
"""Counts the runs after which an unchanged output counts as not drawn. A choice: a fair coin gives 20 equal results
with probability 2^-20."""


Compared = Callable[[Run, Mapping[str, Difference]], None]
"""Takes a run and the difference of each output."""


@dataclass(frozen=True)
class Side:
    """Holds one of the two computations: a session, and its name in the report."""

    name: str
    session: Session


@dataclass(frozen=True)
class Evidence:
    """Holds the means of a comparison in addition to the two sides.

    `noise` measures how far rounding moves the reference's outputs. `coarser` says how many times coarser the candidate
    computes each output, by the count of operations. `faults` is the candidate, in which faults are planted. `original`
    is the reference, if the two may hold different weights. `arbiter` computes in float64. If the candidate runs on
    another runtime, `elsewhere` returns why that runtime refuses the reference too. `same` is True if both sides are
    one model; `identical` is True if both also run in the same way, so that they cannot differ. `sized` counts the
    rounding of each output again, for the sizes of one run. The comparison searches for inputs that take all sides of
    the Ifs, Loops and Wheres of the graph in `sides`. `has_module` is True if one side is a module that was not
    exported for this comparison, so that a side of a branch is known only by running it. `budget` says how many faults
    are worth their time.
    """

    noise: Noise | None = None
    coarser: Mapping[str, float] = field(default_factory=dict)
    faults: Probe | None = None
    original: Probe | None = None
    arbiter: Arbiter | None = None
    elsewhere: Callable[[Feed], Problem | None] = lambda _: None
    same: bool = False
    identical: bool = False
    sized: Callable[[Mapping[str, int]], Mapping[str, Rounding]] | None = None
    sides: Probe | None = None
    has_module: bool = False
    budget: Budget = field(default_factory=lambda: Budget(thorough=True))

    @classmethod
    def of(
        cls,
        reference: Probe | None,
        candidate: Probe | None,
        arbiter: Arbiter | None = None,
        *,
        plant: bool = True,
        by_name: bool = False,
    ) -> Self:
        """Makes the means that follow from the probes of the two sides; a probe is None for a side that is no graph.
        Faults are planted if `plant` is set. With `by_name`, tensors and nodes of the same name mean the same on both
        sides. Then the comparison searches for differences of such tensors and nodes, and the rounding of either side
        counts."""
        source = candidate if reference is None else reference
        if source is None:
            return cls(arbiter=arbiter)
        other = candidate if by_name and reference is not None else None
        return cls(
            Noise(source, is_reference=reference is not None, other=other),
            faults=(source if candidate is None else candidate) if plant else None,
            original=None if other is None else reference,
            arbiter=arbiter,
        )


def verify(
    reference: Side,
    candidate: Side,
    plan: Plan,
    roundings: Mapping[str, Rounding],
    evidence: Evidence | None = None,
    on_worst: Callable[[Feed], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
    on_compared: Compared | None = None,
) -> Verification:
    """Compares `candidate` with `reference`. `roundings` gives the largest tolerance of each output by name. `on_worst`
    is called with the input of the largest difference, `on_run` with each run of the reference, `on_compared` with each
    run that counts and the difference of each output.

    Raises:
        OnnxsmithError: `verify/no-valid-input` if the reference accepts none of the generated inputs;
            `verify/nothing-compared` if no input was given and none is generated; `verify/nondeterministic` if the
            reference answers one input differently in two runs; `runtime/died` or `runtime/timeout` if the reference is
            gone.
    """
    evidence = evidence or Evidence()
    mismatch = interface_mismatch(reference.session.signature, candidate.session.signature)
    explorer = Explorer(reference.session, plan, roundings)
    for one in (evidence.noise, evidence.arbiter):
        if one is not None:
            one.free = plan.free
    taken = _taken(explorer, f"{reference.name} and {candidate.name}")
    evidence.budget.starts()
    more, untaken = _of_all_sides(evidence, plan, explorer, taken)
    taken += more
    checks = _checks(reference.session, candidate.session, explorer, roundings, evidence, plan.free)
    declared = Declarations(candidate.session.signature)
    runs = list(
        _answered(taken, explorer, candidate.session, checks, evidence.elsewhere, declared, on_run, on_compared)
    )
    _refuse_constants(explorer.drawn, candidate.session, runs, checks)
    checks.judge_movement(runs)
    if on_worst is not None and checks.worst is not None:
        on_worst(checks.worst)
    results = checks.results()
    agrees = not mismatch and all(output.equal for output in results)
    power, unmeasured, weak = _power(evidence, runs, checks, results, plan.seed) if agrees else (None, (), ())
    refused = all(run.left_out for run in taken)
    unsure = (
        *((f"{candidate.name} refuses all inputs that were tried",) if refused else ()),
        *checks.undecided,
        *(_unsure(evidence, runs, checks, results, weak, roundings) if agrees else ()),
        *(_unseen_in_branches(evidence, untaken) if agrees else ()),
    )
    shapes = () if checks.undecided else _only_shapes_compared(results)
    return Verification(
        reference=reference.name,
        candidate=candidate.name,
        verified=True,
        equal=agrees and not unsure,
        runs=tuple(run.feed.label for run in runs if not checks.says_nothing(run)),
        sizes=tried(runs),
        counts=counts_tried(plan.generator, runs),
        ranges={name: str(one) for name, one in plan.limits.declared.items()} if plan.generate else {},
        refused=explorer.refused,
        refused_sizes=explorer.refused_sizes,
        outputs=results,
        notes=(*mismatch, *checks.notes, *explorer.notes, *unmeasured, *evidence.budget.notes()),
        untried=(*explorer.untried, *checks.untried, *_gaps(untaken, unsure if agrees else ()), *shapes),
        power=power,
        unsure=unsure if agrees else (),
        misdeclared=declared.wrong(),
    )


def _taken(explorer: Explorer, where: str) -> list[Run]:
    """Returns the inputs that the reference accepts.

    Raises:
        OnnxsmithError: `verify/nothing-compared` if there are none.
    """
    taken = list(explorer.runs())
    if not taken:
        raise problem(
            "verify/nothing-compared",
            "there is no input to compare on",
            where=where,
            fix="give one: --input inputs.npz",
        )
    return taken


def _of_all_sides(
    evidence: Evidence, plan: Plan, explorer: Explorer, taken: Sequence[Run]
) -> tuple[list[Run], tuple[Untaken, ...]]:
    """Returns runs for the branches of Ifs that no input takes, and the branches without such a run."""
    if evidence.sides is None or not plan.generate:
        return [], ()
    return Sides(evidence.sides).completed(taken, plan.generator, explorer.answered)


def _refuse_constants(drawn: Set[str], candidate: Session, runs: Sequence[Run], checks: Checks) -> None:
    """Records each output that the reference draws at random and that never changes in the candidate."""
    for name in sorted(drawn):
        if runs and not _varies(candidate, runs[0], name):
            checks.refuse(
                name, ("the reference draws it at random in every run, but here it is always the same"), "all runs"
            )


def _checks(
    reference: Session,
    candidate: Session,
    explorer: Explorer,
    roundings: Mapping[str, Rounding],
    evidence: Evidence,
    free: Free,
) -> Checks:
    """Makes the Checks that collect the candidate's answers."""
    return Checks(
        reference.signature,
        roundings,
        drawn=explorer.repeated,
        unsteady=lambda run: explorer.unsteady(run) | explorer.unsteady_in(candidate, run),
        arbiter=evidence.arbiter,
        allowance=Allowance(roundings, evidence.noise, evidence.coarser, same=evidence.same, sized=evidence.sized),
        free=free,
    )


def _answered(
    runs: Sequence[Run],
    explorer: Explorer,
    session: Session,
    checks: Checks,
    elsewhere: Callable[[Feed], Problem | None],
    declared: Declarations,
    on_run: Callable[[Run], None] | None,
    on_compared: Compared | None,
) -> Iterator[Run]:
    """Runs the candidate, adds its outputs to `checks`, and yields the runs that count."""
    for index, run in enumerate(runs):
        advance("verify", index, len(runs))
        if explorer.drops(run, session):
            continue
        if on_run is not None:
            on_run(run)
        try:
            outputs, refusal = answer(session, run.feed)
        except OnnxsmithError as error:
            if error.problem.id in _BEYOND and run.generated:
                checks.give_up(run, error.problem)
                return  # each further run could wait as long
            if error.problem.id != "runtime/died" or not run.generated:
                raise
            outputs, refusal = None, error.problem
        if refusal is not None and refusal.id in _BEYOND:
            checks.give_up(run, refusal)
            continue
        if refusal is not None and run.generated and elsewhere(run.feed) is not None:
            explorer.leave_out(run, session.provider, refusal)
            continue
        if outputs is not None and run.feed.zero:
            outputs = _with_empty_of(run.outputs, outputs)
        elif outputs is not None:
            declared.add(run.feed.values, outputs)
        found = checks.add(run, outputs, refusal)
        if on_compared is not None:
            on_compared(run, found)
        yield run


def _with_empty_of(ours: Outputs, theirs: Outputs) -> Outputs:
    """Returns `theirs` with the empty outputs of `ours` where both are empty and of one rank. A Loop without iterations
    does not know the other sizes of what it collects: a runtime takes those that the file declares, else 0."""

    def are_alike(one: Any, other: Any) -> bool:
        arrays = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
        return arrays and not one.size and not other.size and (one.ndim, one.dtype) == (other.ndim, other.dtype)

    return {name: ours[name] if are_alike(ours.get(name), value) else value for name, value in theirs.items()}


def _power(
    evidence: Evidence, runs: Sequence[Run], checks: Checks, results: Sequence[OutputCheck], seed: int
) -> tuple[Power | None, tuple[str, ...], tuple[str, ...]]:
    """Returns the faults that the check would have noticed, a note if they cannot be measured, and a sentence if they
    are too few."""
    faults = evidence.faults
    if faults is None or not any(output.compared and not output.drawn for output in results):
        return None, (), ()
    found = measured(faults, runs, checks, seed=seed, quantises=quantises_values(faults.model), budget=evidence.budget)
    if found is None:
        said = "it is unknown how small an error the check would notice: its runtime does not accept weights as inputs"
        return None, () if checks.exact else (said,), ()
    # Bit-exact outputs need no planted faults: faults in inputs are then an extra measurement.
    weak = "" if checks.exact and found.kind == "inputs" else found.shortcoming()
    return found, (), (weak,) if weak else ()


def _unsure(
    evidence: Evidence,
    runs: Sequence[Run],
    checks: Checks,
    results: Sequence[OutputCheck],
    weak: tuple[str, ...],
    roundings: Mapping[str, Rounding],
) -> tuple[str, ...]:
    """Returns sentences on why agreeing outputs prove too little. If the user gave a tolerance, fewer proofs are
    required, unless it decides nothing: no output has floats that change with the input."""
    is_asked = any(one.given is not None for one in roundings.values())
    decides = is_asked and any(one.tolerance and one.compared and not one.weak for one in results)
    return (*_unseen(evidence, runs, checks, asked=is_asked), *(() if evidence.identical or decides else weak))


def _unseen(evidence: Evidence, runs: Sequence[Run], checks: Checks, *, asked: bool) -> tuple[str, ...]:
    """Returns sentences about differences in weights or nodes that no input shows. Nodes are not compared if the user
    `asked` for a tolerance, which allows them to differ."""
    if evidence.original is None or evidence.faults is None:
        return ()
    plainly = _differs_unoptimised(evidence.original, evidence.faults, runs, checks)
    if plainly:
        return (plainly,)
    from onnxsmith.verification.unseen_differences import unseen_weights

    found = unseen_weights(evidence.original, evidence.faults, runs, checks)
    from onnxsmith.verification.unseen_differences import unseen_nodes

    if asked:
        return (found,) if found else ()
    nodes = unseen_nodes(evidence.original, evidence.faults, runs, checks, checks.free)
    from onnxsmith.verification.unseen_inner_nodes import unseen_inner_nodes

    nodes += unseen_inner_nodes(evidence.original, evidence.faults, runs, checks)
    return (*((found,) if found else ()), *nodes)


def _unseen_in_branches(evidence: Evidence, untaken: Sequence[Untaken]) -> tuple[str, ...]:
    if evidence.has_module and untaken:  # what a module does on that side is known only by running it there
        return (untaken[0].clause,)
    if not untaken or evidence.original is None or evidence.faults is None:
        return ()
    from onnxsmith.verification.unseen_differences import unseen_in_branches

    found = unseen_in_branches(evidence.faults.model, untaken)
    return (found,) if found else ()


def _gaps(untaken: Sequence[Untaken], unsure: Sequence[str]) -> list[str]:
    """Returns the clauses of sides that no input took, without the one that the verdict names already."""
    return [branch.clause for branch in untaken if branch.clause not in unsure]


def _differs_unoptimised(original: Probe, candidate: Probe, runs: Sequence[Run], checks: Checks) -> str:
    """Returns a sentence if reference and candidate differ without the runtime's optimisation, as the probes run them.
    A fused kernel may ignore attributes that the file sets, so the optimised models may hide such a difference."""
    for run in runs:
        ours, theirs = original.plain(run.feed), candidate.plain(run.feed)
        name = checks.differs(run, ours, theirs) if ours is not None and theirs is not None else ""
        if name:
            return f"with the runtime's optimisations off, output {name!r} differs on {run.feed.label}"
    return ""


def _only_shapes_compared(results: Sequence[OutputCheck]) -> tuple[str, ...]:
    """Returns the headline's clause if no output had a value to compare."""
    if any(output.compared or output.reason for output in results) or not results:
        return ()
    drawn = all(output.drawn for output in results)
    what = "is drawn at random" if drawn else "is empty or NaN on every input"
    return (f"every output {what}: only dtypes, shapes and the positions of NaN were compared",)


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
    """Lists the differences of the interfaces that would break a caller of the reference: names, order, dtypes, frozen
    axes."""
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
            # A candidate may accept more sizes than the reference, but not fewer.
            if what == "input" and a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
                frozen = [
                    f"axis {axis} of input {a.name!r} is fixed to {theirs_}; expected dynamic {ours_}"
                    for axis, (ours_, theirs_) in enumerate(zip(a.shape, b.shape, strict=True))
                    if isinstance(theirs_, int) and isinstance(ours_, str)
                ]
                found += frozen
    return tuple(found)
