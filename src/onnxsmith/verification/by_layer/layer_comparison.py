"""Compares two sides tensor by tensor, and reports where they first differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.layers import Layer, Layers, NotFinite, growing
from onnxsmith.base.words import first_few
from onnxsmith.runtimes.base import Feeds, Value
from onnxsmith.verification.by_layer import alignment as aligning
from onnxsmith.verification.by_layer.alignment import Alignment, Pair
from onnxsmith.verification.by_layer.chunks import chunks
from onnxsmith.verification.by_layer.divergence import diverge
from onnxsmith.verification.by_layer.equal_values import equal_values, fits
from onnxsmith.verification.by_layer.pair_difference import Found, Look
from onnxsmith.verification.by_layer.same_weights import same_weights
from onnxsmith.verification.by_layer.side_outline import Step
from onnxsmith.verification.by_layer.tap import Tap
from onnxsmith.verification.by_layer.tensor_pairs import STRONG, Matches, NodeDifference, is_reshaping
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.rounding_terms import MOVING

BUDGET = 2 * 2**30
"""Limits the bytes that the compared tensors may take together. A choice: 2 GiB."""
_LOOK_AT_VALUES = 0.75
"""Names the share of paired tensors below which tensors are also paired by equal values. A choice: this pairing costs a
run of each side."""
LEAST_SHARE = 0.5
"""Names the share of tensors that has to be paired, by default. A choice: a comparison of a few tensors must not look
like a comparison of all."""


@dataclass(frozen=True)
class Request:
    """Says what to compare: one input with the names of each side, and the pairs of ports."""

    label: str
    feeds: tuple[Feeds, Feeds]
    ports: Mapping[str, str]
    budget: int = BUDGET
    least_share: float = LEAST_SHARE
    tolerance: float | None = None
    """Limits the relative difference of an operation, in place of the computed tolerance."""
    match: Callable[[], Matches] = Matches
    """Matches the graphs of both sides when it is called."""
    file: str = ""
    """Names the reference's file, if it is one."""


def look(reference: Tap, candidate: Tap, request: Request) -> Layers:
    """Compares the layers of `candidate` with the layers of `reference`. If a side's outputs are constants, there are
    no layers, because no tensor of this side is computed from the inputs.

    Raises:
        OnnxsmithError: `compare/unpaired` if too few tensors could be paired; `runtime/…` if a side fails.
    """
    _with_baked(reference, candidate, request)
    constant = [side.label for side in (reference, candidate) if not side.outline.tensors()]
    if constant:
        return _without_layers(reference, candidate, constant, request)
    with stage("align"):
        found = aligning.align(reference.outline, candidate.outline, request.ports, request.match)
        outlines = reference.outline, candidate.outline
        if found.left_candidate and found.left_reference:
            found = aligning.extended(
                *outlines, request.ports, found, same_weights(reference, candidate, found), "weights"
            )
        if found.share < _LOOK_AT_VALUES and found.left_candidate and found.left_reference:
            values = equal_values(reference, candidate, found, request.feeds, request.budget)
            found = aligning.extended(*outlines, request.ports, found, values, "value")
        found = _behind(reference, candidate, found, request)
        if reference.outline.steps == candidate.outline.steps:  # one graph on two runtimes
            found = replace(found, pairs=tuple(map(_certain, found.pairs)))
    if found.share < request.least_share or not found.pairs:
        raise _unpaired(reference, candidate, found, request)
    if reference.quantises != candidate.quantises:
        noisy = candidate if candidate.quantises else reference
        noisy.scales = {}
    with stage("layers"):
        found, result = _diverged(reference, candidate, found, request)
    return _part(reference, candidate, found, result, request)


def _with_baked(reference: Tap, candidate: Tap, request: Request) -> None:
    """Includes tensors that depend on no input, if an output depends on the inputs on one side only. The other side
    then stored an activation as a constant, and later tensors differ."""
    ours, theirs = reference.outline, candidate.outline
    ports = [(a, b) for a, b in request.ports.items() if a in ours.outputs]
    if all((a in ours.moving) == (b in theirs.moving) for a, b in ports):
        return
    pairs = [*request.match().tensors, *ports]
    should = frozenset(b for a, b in pairs if a in ours.moving and b in theirs.maker) - theirs.moving
    candidate.outline = replace(theirs, baked=should)
    should = frozenset(a for a, b in pairs if b in theirs.moving and a in ours.maker) - ours.moving
    reference.outline = replace(ours, baked=should)


_UNSURE = ("structure", "weights", "value", "match")
"""Lists the ways of pairing that may be wrong if two tensors are alike."""


def _diverged(reference: Tap, candidate: Tap, found: Alignment, request: Request) -> tuple[Alignment, Found]:
    """Compares all pairs. The candidate's runtime may refuse a tensor of the reference, for example because of a wrong
    pair. Then only pairs by name and origin are compared. If the runtime refuses these too, only float tensors are
    compared, because computed sizes are alike in many places."""
    sure = tuple(pair for pair in found.pairs if pair.how not in _UNSURE)
    floats = tuple(pair for pair in found.pairs if candidate.outline.is_number(pair.candidate))
    tries = [found.pairs, sure, floats, tuple(pair for pair in sure if pair in floats)]
    said = ""
    for number, pairs in enumerate(tries):
        if not pairs or pairs in tries[:number]:
            continue
        pieces = chunks(pairs, candidate.nbytes(request.feeds[1]), request.budget)
        try:
            result = diverge(reference, candidate, pieces, request.feeds, tolerance=request.tolerance)
        except OnnxsmithError as error:
            if not any(others and others not in tries[: number + 1] for others in tries[number + 1 :]):
                raise
            said = error.problem.why or error.problem.what
            continue
        left = len(found.pairs) - len(pairs)
        note = f"{left} pairs were left out: {said}" if left else ""
        return replace(found, pairs=pairs, note=note), result
    raise AssertionError("there is at least one pair")


def _without_layers(reference: Tap, candidate: Tap, constant: Sequence[str], request: Request) -> Layers:
    who = " or ".join(dict.fromkeys(constant))
    note = f"only outputs can be compared, not layers: no tensor of {who} is computed from the inputs"
    return Layers(
        reference=reference.label,
        candidate=candidate.label,
        input=request.label,
        layers=(),
        culprits=(),
        share=1.0,
        paired={},
        only_reference=tuple(reference.outline.tensors()),
        only_candidate=tuple(candidate.outline.tensors()),
        notes=(note,),
    )


def _certain(pair: Pair) -> Pair:
    """Returns the pair marked as a pair of equal graphs. Different values or shapes then count as a difference, not as
    a wrong pair."""
    return pair if pair.how == "port" or pair.reference != pair.candidate else replace(pair, how="graph")


_ROUNDS = 8
"""Limits the rounds of pairing by values after an error. A choice: each round is a run of each side."""


def _behind(reference: Tap, candidate: Tap, found: Alignment, request: Request) -> Alignment:
    """Pairs tensors by equal values after an error. The error hides them from the plain search, so the tensors after
    known pairs are computed from the reference's values."""
    for _ in range(_ROUNDS):
        few = found.share < _LOOK_AT_VALUES and found.left_candidate and found.left_reference
        if not few or not candidate.can_force or not fits(reference, found, request.feeds[0], request.budget):
            break
        values = equal_values(reference, candidate, found, request.feeds, request.budget, forced=True)
        more = aligning.extended(reference.outline, candidate.outline, request.ports, found, values, "value")
        if len(more.pairs) == len(found.pairs):
            break
        found = more
    return found


def _unpaired(reference: Tap, candidate: Tap, found: Alignment, request: Request) -> Exception:
    some = (
        f"{len(found.pairs)} tensors could be paired, {found.share:.0%}; at least {request.least_share:.0%} is needed"
    )
    return problem(
        "compare/unpaired",
        some if found.pairs else "no tensors of the two models could be paired",
        where=f"{reference.label} has {len(reference.outline.tensors())}, {candidate.label} "
        f"{len(candidate.outline.tensors())}; without a counterpart: {', '.join(found.left_candidate[:5])}",
        why=(
            "names, origins, structure and values of the two models have too little in common to find where the "
            "models differ"
        ),
        fix="compare with the exported file before optimisation"
        + (f", or lower the limit: --min-paired {math.floor(100 * found.share) / 100:g}" if found.pairs else ""),
    )


def _part(reference: Tap, candidate: Tap, found: Alignment, result: Found, request: Request) -> Layers:
    by_name = {look.pair.candidate: look for look in result.looks if not look.mismatch}
    pairs = [look.pair for look in by_name.values()]
    first = _first_apart(candidate, result, by_name)
    culprits = tuple(dict.fromkeys(first.get(look.pair.candidate, look).pair.candidate for look in result.culprits))
    known = request.match().by_node if culprits else {}
    # Differently computed tensors have no counterpart, so a culprit begins where the last tensors agree.
    loose = {look.pair.candidate for look in result.otherwise}
    paired = {name: look for name, look in by_name.items() if name not in loose}
    layers = tuple(
        _layer(reference, candidate, look, paired if look.pair.candidate in culprits else by_name, known)
        for look in result.looks
        if not look.mismatch or any(look is one for one in first.values())
    )
    return Layers(
        reference=reference.label,
        candidate=candidate.label,
        input=request.label,
        layers=layers,
        culprits=culprits,
        share=found.share,
        paired=aligning.counted(Alignment(tuple(pairs), (), (), 0.0)),
        only_reference=found.left_reference,
        only_candidate=found.left_candidate,
        runs=result.runs,
        not_finite=_not_finite(candidate, result, request),
        left=result.left,
        inside=result.inside,
        pattern="" if first else result.pattern,
        growing=growing(layers),
        notes=(*reference.notes, *candidate.notes, *_notes(result), *filter(None, [found.note])),
    )


def _first_apart(candidate: Tap, result: Found, by_name: Mapping[str, Look]) -> dict[str, Look]:
    """Returns the tensor at which the error of each culprit begins. If a culprit is computed through tensors of another
    shape or dtype than the reference's, this is the first of these tensors that is computed from matching tensors."""
    apart = {look.pair.candidate: look for look in result.looks if look.mismatch and not look.reshaped}
    found = {}
    for culprit in result.culprits:
        steps, _ = candidate.outline.segment(culprit.pair.candidate, by_name.keys())
        through = [apart[name] for step in steps for name in step.outputs if name in apart]
        if through:
            found[culprit.pair.candidate] = through[0]
            through[0].verdict = "own error"
    return found


def _notes(result: Found) -> list[str]:
    notes = []
    apart = [look for look in result.looks if look.mismatch]
    if apart:
        first = apart[0]
        notes.append(
            f"{len(apart)} pairs of tensors do not match, as their values show: {first.pair.reference} and "
            f"{first.pair.candidate} "
            f"({first.mismatch})"
        )
    if result.otherwise:
        names = first_few([look.pair.candidate for look in result.otherwise], 5)
        notes.append(
            f"{len(result.otherwise)} tensors are computed in different ways, but later tensors agree again: {names}"
        )
    if result.slight:
        names = first_few([f"{one.pair.candidate} ({one.severity:.1f} times)" for one in result.slight], 5)
        notes.append(
            f"{len(result.slight)} tensors differ by slightly more than is allowed, but no output shows this: {names}"
        )
    if result.rounded:
        names = first_few([look.pair.candidate for look in result.rounded], 5)
        notes.append(
            f"rounding explains these: both sides have about the same distance from the float64 result: {names}"
        )
    return notes


def _layer(
    reference: Tap,
    candidate: Tap,
    look: Look,
    by_name: Mapping[str, Look],
    differences: Mapping[str, Sequence[NodeDifference]],
) -> Layer:
    name = look.pair.candidate
    steps, before = candidate.outline.segment(name, by_name.keys())
    backwards = steps[::-1]
    types = candidate.outline
    ranked = sorted(
        backwards,
        key=lambda step: (
            _evidence(differences.get(step.label, ()), step),
            look.dtype.startswith("float") and not any(map(types.is_number, step.outputs)),  # sizes and positions
            *_suspicion(step),
        ),
    )
    step = ranked[0] if ranked else None
    known = [one for one in (step, reference.outline.step_of(look.pair.reference)) if one is not None]
    into = [by_name[read].inherited.worst_rel for read in before if read in by_name]
    growth = look.inherited.worst_rel / max(into) if into and max(into) > 0 else None
    wrong = look.own if look.own is not None and look.own.reason else look.inherited
    far = math.inf if look.mismatch else 0.0
    return Layer(
        name=name,
        reference=look.pair.reference,
        paired_by=look.pair.how,
        op=step.op if step else "",
        steps=tuple(one.label for one in ranked),
        module=next((one.module for one in known if one.module), ""),
        source=next((one.source for one in known if one.source), ""),
        dtype=look.dtype,
        shape=look.shape,
        inherited=look.inherited.worst_rel or far,
        absolute=look.inherited.worst_abs or far,
        own=None if look.own is None else look.own.worst_rel,
        allowed=look.rounding.tolerance,
        growth=growth,
        verdict=look.verdict,
        differs=bool(look.inherited.reason or look.mismatch),
        reason=look.mismatch or wrong.reason,
        metrics=look.metrics,
    )


def _evidence(differences: Sequence[NodeDifference], step: Step) -> int:
    """Ranks a step by its difference from its counterpart in the graph, the most suspicious 0. Two kinds of steps have
    rank 0: a step that computes differently, and a step that chooses elements and that the reference lacks, because
    optimisers add no such step."""
    if not differences:
        return 2
    if any(one.what == "added" for one in differences) and step.op in _CHOOSING:
        return 0
    return 0 if any(one.what in STRONG for one in differences) else 1


_CHOOSING = ("Gather", "GatherElements", "GatherND")
"""Lists the operators that choose elements of a tensor. Slice and Split are left out, because tools replace one by the
other."""


def _suspicion(step: Step) -> tuple[bool, bool, int, bool]:
    """Ranks the steps of one pair. Steps with the most weights come first, then other computations, then steps that
    only move data. Reshaping, which keeps the order of the elements, comes last. A quantiser comes before its
    dequantiser, because the quantiser loses digits."""
    return step.op in MOVING, is_reshaping(step.op), -step.weights, step.op == "DequantizeLinear"


def _not_finite(candidate: Tap, result: Found, request: Request) -> NotFinite | None:
    first = result.first_nonfinite
    if first is None:
        return None
    name = first.pair.candidate
    step = candidate.outline.step_of(name)
    known = {look.pair.candidate for look in result.looks}
    _, before = candidate.outline.segment(name, known)
    made = [read for read in before if read in candidate.outline.maker]
    values = {**candidate.values(request.feeds[1], made), **{k: v for k, v in request.feeds[1].items() if k in before}}
    size = int(np.prod(first.shape, dtype=np.int64))
    return NotFinite(
        name,
        step.op if step else "",
        first.nonfinite[1],
        size,
        tuple(f"{read}: {_range(value)}" for read, value in values.items()),
    )


def _range(value: Value) -> str:
    if not isinstance(value, np.ndarray) or value.size == 0 or value.dtype.kind in "OUS":
        return "no numbers"
    wide = widen(value)
    finite = wide[np.isfinite(wide)]
    if finite.size == 0:
        return "nothing finite"
    lost = wide.size - finite.size
    return f"{finite.min():.4g} to {finite.max():.4g}" + (f", {lost} not finite" if lost else "")
