"""Finds the difference of two graphs that explains a difference of their outputs, by undoing it.

The differences of the graphs are undone one at a time in a copy of the candidate, first those in layers with errors. If
all outputs then agree except for rounding, the node is the cause.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.layers import Cause, Layer, Layers
from onnxsmith.comparison.outputs.candidate_changes import Attempt, Attempts
from onnxsmith.comparison.outputs.graph_matches import GraphMatches, Suspect, texts_of
from onnxsmith.comparison.outputs.node_transplant import CannotUndo, Undoing
from onnxsmith.comparison.outputs.undoing_patches import attributes_patch
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.graph.surgery.raising import raised
from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.by_layer.error_effects import apart, farthest
from onnxsmith.verification.by_layer.isolated_runs import Trial
from onnxsmith.verification.by_layer.layer_comparison import Request
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.by_layer.pair_difference import value_difference
from onnxsmith.verification.by_layer.tap import Values
from onnxsmith.verification.rounding_terms import MOVING

_MOST_TRIED = 12
"""How many differences are tried. A choice: each takes a session and a run."""
_LARGE = 2**30
"""Bytes of weights above which only a few differences are tried, because each session takes seconds. A choice."""
_FEW = 3
_HELPS = 0.5
"""If undoing a node's change leaves at most this share of the difference, the node is named as one cause of several. A
choice."""
_MOST_TOGETHER = 6
"""How many culprits are undone together. A choice: a file with more faults is another model."""
_NARROW = 2.0**-17
"""Least difference of the outputs for trying a Cast that only the candidate has, even if nothing else is suspicious. It
is a sixty-fourth of float16's unit roundoff, above the rounding of float32. A choice."""
_GONE = 0.1
"""The largest share of the difference that may remain as rounding if the outputs agree. A choice: the bound of a whole
network may hide a small fault."""
_SHOWN = 6
"""How many differences of a layer's nodes the report lists. A choice: one line or two."""


@dataclass(frozen=True)
class _Outputs:
    """The distance of the outputs from the reference. `apart` is the worst root mean square over its scale, `farthest`
    the difference of the worst element, as reports show it. `agree` says whether all agree except for rounding."""

    apart: float
    farthest: float
    agree: bool


def with_cause(
    sides: tuple[OnnxTap, OnnxTap],
    matches: GraphMatches,
    found: Layers,
    request: Request,
    *,
    equal: bool = False,
) -> Layers:
    """Adds the cause to a comparison by layer, if undoing one difference of the graphs removes all or most of the
    outputs' difference. The layer of that node is then the first culprit, unless no layer errs and the outputs are
    `equal` within the tolerance of the candidate's own dtypes. A detour through a narrower dtype has no such excuse."""
    listed = _listed(found, matches)
    pairs = [Pair(one.reference, one.name, "port") for one in found.layers if one.paired_by == "port"]
    if not pairs:
        return replace(found, differences=listed)
    with stage("causes"):
        trial = Trial(sides, pairs, request.feeds, tolerance=request.tolerance)
        trying = _Trying(sides, matches, found, trial, request)
        cause = trying.cause()
    is_excused = equal and not found.culprits and not (cause is not None and _is_detour(cause, sides, matches))
    if cause is None or is_excused:
        return replace(found, cause=cause, differences=listed)
    return _named(found, cause, listed, sides[1])


class _Trying:
    def __init__(
        self,
        sides: tuple[OnnxTap, OnnxTap],
        matches: GraphMatches,
        found: Layers,
        trial: Trial,
        request: Request,
    ) -> None:
        self._sides, self._matches, self._found, self._trial = sides, matches, found, trial
        self._partners = {**request.ports, **dict(matches.tensors)} | {one.reference: one.name for one in found.layers}
        self._names = [pair.candidate for pair in trial.pairs]
        self._reference = trial.reference(self._names)
        self._roundings = trial.roundings(self._names, frozenset())
        self._ops = {step.label: step.op for step in sides[1].outline.steps}
        self._local = Attempts(sides, matches, trial.feeds, self._partners, request.file)

    def cause(self) -> Cause | None:
        """Returns the node whose change makes the outputs agree, or else the one that helps most; None if none
        helps."""
        values = self._trial.candidate({}, self._names)
        before = self._judged(values)
        is_wrong = bool(self._found.culprits) or self._is_beyond(values)
        # Equal outputs, or a difference that not even a narrow Cast has to explain.
        if not before.apart or not (is_wrong or before.apart >= _NARROW):
            return None
        best: Cause | None = None
        for attempt in self._attempts(only_narrowing=not is_wrong):
            after = self._tried(attempt)
            if after is None or math.isinf(after.apart) or after.apart > _HELPS * before.apart:
                continue
            made = self._cause_of(attempt, before, after)
            if made.agrees:
                return made
            if best is None or made.after < best.after:
                best = made
        together = self._together(before) if is_wrong else None
        return together if together is not None and (best is None or together.after < best.after) else best

    def _together(self, before: _Outputs) -> Cause | None:
        """Returns the differences of several culprits as one cause, if undoing all of them helps; each culprit has an
        error of its own, so one change alone does not remove all."""
        changes = [one for name in self._found.culprits[:_MOST_TOGETHER] for one in self._of_culprit(name)]
        if len({one.node for one in changes}) < 2:
            return None

        def edit(undoing: Undoing) -> None:
            for one in changes:
                one.edit(undoing)

        first = changes[0]
        after = self._tried(replace(first, edit=edit))
        if after is None or math.isinf(after.apart) or after.apart > _HELPS * before.apart:
            return None
        made = self._cause_of(replace(first, patch="".join(one.patch for one in changes)), before, after)
        said = [f"{'; '.join(one.changes)} at {self._ops.get(one.node, '')} {one.node}" for one in changes]
        by_hand = tuple(text for one, text in zip(changes, said, strict=True) if not one.patch) if made.patch else ()
        return replace(made, more=tuple(said[1:]), by_hand=by_hand)

    def _of_culprit(self, name: str) -> list[Attempt]:
        """Returns all differences of a culprit's attributes and constants, or else the first difference of its
        nodes."""
        layer = self._found.layer(name)
        local = [one for one in self._local.of(layer) if not one.rank]
        whole = [one for one in local if not any(_is_part(one, other) for other in local)]
        if whole:
            return whole
        suspects = (self._attempt(one) for one in self._suspects(only_narrowing=False) if one.node in layer.steps)
        return list(itertools.islice(suspects, 1))

    def _attempts(self, *, only_narrowing: bool) -> Iterator[Attempt]:
        """Yields the changes to try. The order is: one attribute, weight or node with another computation; one operand
        or left-out node; other differences of the graphs; a whole layer."""
        suspects = [self._attempt(one) for one in self._suspects(only_narrowing=only_narrowing)]
        if only_narrowing:
            yield from suspects
            return
        layers = [self._found.layer(name) for name in self._found.culprits[:_FEW]]
        local = [one for layer in layers for one in self._local.of(layer)]
        found = [one for one in local if not one.rank] + [one for one in suspects if not one.rank]
        found += [one for one in local if one.rank] + [one for one in suspects if one.rank]
        yield from found[: 2 * (_FEW if self._is_large else _MOST_TRIED)]
        yield from filter(None, map(self._local.whole, layers))

    def _attempt(self, suspect: Suspect) -> Attempt:
        """Returns a difference of the graphs as a change to try. Its rank is 0 if the only difference is the
        computation of one pair of nodes."""
        known = self._matches.counterparts.get(suspect.node)
        patch = attributes_patch(suspect.node, suspect.attributes, known.node) if known is not None else ""
        is_single = len(suspect.changes) == 1 and suspect.is_strong
        return Attempt(
            suspect.node, suspect.changes, lambda undoing: self._undo(suspect, undoing), 0 if is_single else 1, patch
        )

    def _suspects(self, *, only_narrowing: bool) -> Sequence[Suspect]:
        """Returns the differences to try, the most suspicious first."""
        blamed = {label: place for place, label in enumerate(self._blamed())}
        places = {
            one: min((blamed[label] for label in (one.node, *one.undo) if label in blamed), default=len(blamed))
            for one in filter(None, map(self._trimmed, self._matches.suspects))
            if one.narrows or not only_narrowing
        }
        alone = sum(one.narrows for one in places) <= _FEW  # else the candidate was converted to another dtype
        ranked = sorted(
            places,
            key=lambda one: (
                places[one] == len(blamed),
                not (one.is_strong or (one.narrows and alone)),
                places[one],
                _size(one),
            ),
        )
        return ranked[: _FEW if self._is_large else _MOST_TRIED]

    @cached_property
    def _forms(self) -> Mapping[str, ir.Node]:
        """The reference's nodes in the candidate's opset, by the name of their first output. Empty unless that opset is
        newer."""
        old, new = (side.model.opset_imports.get("", 0) for side in self._sides)
        if not 0 < old < new:
            return {}
        made, errors = raised(self._sides[0].model, new)
        return {} if errors else {node.outputs[0].name or "": node for node in made.graph if node.outputs}

    @cached_property
    def _is_large(self) -> bool:
        held = self._sides[1].model.graph.initializers.values()
        return sum(value.const_value.nbytes for value in held if value.const_value) > _LARGE

    @cached_property
    def _exact(self) -> tuple[frozenset[str], frozenset[str]]:
        """The nodes of both sides that compute only layers found equal."""
        cuts = {one.name for one in self._found.layers}
        theirs = {one.reference for one in self._found.layers}
        right: tuple[set[str], set[str]] = set(), set()
        wrong: tuple[set[str], set[str]] = set(), set()
        for one in self._found.layers:
            into = right if one.verdict == "equal" and not one.differs else wrong
            into[0].update(step.label for step in self._sides[0].outline.segment(one.reference, theirs)[0])
            into[1].update(step.label for step in self._sides[1].outline.segment(one.name, cuts)[0])
        return frozenset(right[0] - wrong[0]), frozenset(right[1] - wrong[1])

    def _trimmed(self, suspect: Suspect) -> Suspect | None:
        """Returns a region without the nodes that compute equal tensors; None if nothing is left. A region with a Cast
        or a quantiser stays whole, because the loss may pass as its rounding."""
        if suspect.narrows:
            return suspect
        removed = tuple(node for node in suspect.removed if node.name not in self._exact[0])
        added = tuple(node for node in suspect.added if node.name not in self._exact[1])
        if (removed, added) == (suspect.removed, suspect.added):
            return suspect
        if not removed and not added:
            return None
        blamed = set(self._blamed())
        reader = next((label for label in suspect.undo if label in blamed), next(iter(suspect.undo), suspect.node))
        node = added[0].name if added else reader
        return replace(suspect, node=node, changes=texts_of(removed, added), removed=removed, added=added)

    def _blamed(self) -> Iterator[str]:
        """Yields the nodes of the layers with errors."""
        for name in self._found.culprits:
            yield from self._found.layer(name).steps

    def _undo(self, suspect: Suspect, undoing: Undoing) -> None:
        outputs = {value.name: value for value in self._sides[0].model.graph.outputs}
        if suspect.narrows:
            undoing.prefer(dict(self._matches.tensors))
        for label in suspect.undo:
            known = self._matches.counterparts.get(label)
            if known is None:
                raise CannotUndo
            undoing.undo(known.output, known.node)
        for old, new in suspect.outputs:
            if old not in outputs:  # the result of a body
                raise CannotUndo
            undoing.undo_output(outputs[old], new)

    def _tried(self, attempt: Attempt) -> _Outputs | None:
        """Returns the outputs with a difference undone; None if that is impossible."""

        def edit(model: ir.Model) -> None:
            undoing = Undoing(model, self._sides[0].model, self._partners, self._forms)
            attempt.edit(undoing)
            undoing.finish()

        try:
            return self._judged(self._sides[1].edited(self._trial.feeds[1], self._names, edit))
        except (CannotUndo, OnnxsmithError):
            return None

    def _judged(self, values: Values) -> _Outputs:
        agree, most, worst = True, 0.0, 0.0
        for name in self._names:
            ours, theirs = self._reference[name], values[name]
            agree = agree and not value_difference(ours, theirs, self._roundings[name]).reason
            most, worst = max(most, apart(ours, theirs)), max(worst, farthest(ours, theirs))
        return _Outputs(float(most), float(worst), agree)

    def _is_beyond(self, values: Values) -> bool:
        """Whether an output differs by more than the rounding of the reference's own dtypes. A Cast to float16 that
        only the candidate has excuses nothing here."""
        partners = [pair.reference for pair in self._trial.pairs]
        allowed = self._sides[0].roundings(frozenset(), partners)
        return any(
            pair.reference in allowed
            and value_difference(
                self._reference[pair.candidate], values[pair.candidate], allowed[pair.reference]
            ).reason
            for pair in self._trial.pairs
        )

    def _cause_of(self, attempt: Attempt, before: _Outputs, after: _Outputs) -> Cause:
        known = self._matches.counterparts.get(attempt.node)
        return Cause(
            attempt.node,
            known.node.name or "" if known is not None else "",
            self._ops.get(attempt.node, ""),
            attempt.changes,
            before.farthest,
            after.farthest,
            after.agree and after.apart <= _GONE * before.apart,
            attempt.patch,
        )


def _is_part(one: Attempt, other: Attempt) -> bool:
    """Whether another attempt makes the change of this one, and more."""
    return one.node == other.node and set(one.changes) < set(other.changes)


def _size(suspect: Suspect) -> int:
    """Returns how many nodes a change touches. The smallest is tried first."""
    return len(suspect.undo) + len(suspect.outputs) + len(suspect.removed) + len(suspect.added)


def _is_detour(cause: Cause, sides: tuple[OnnxTap, OnnxTap], matches: GraphMatches) -> bool:
    """Whether the cause are Casts that only round a tensor: to a narrower float and back, in a candidate that computes
    nothing in that dtype that the reference does not compute in it."""
    suspect = next((one for one in matches.suspects if one.narrows and one.node == cause.node), None)
    if suspect is None or suspect.removed or not cause.agrees or any(node.op != "Cast" for node in suspect.added):
        return False
    labels = {node.name for node in suspect.added}
    ours, theirs = (_computed_in(side) for side in sides)
    casts = [node for node in sides[1].model.graph if node_label(node) in labels]
    narrow = [node.outputs[0].dtype for node in casts if _narrows(node)]
    return bool(narrow) and all(theirs[dtype] <= ours[dtype] for dtype in narrow)


def _computed_in(side: OnnxTap) -> Counter[ir.DataType | None]:
    """Counts the nodes that compute in each dtype, without those that only move or convert."""
    return Counter(
        node.outputs[0].dtype
        for node in side.model.graph
        if node.outputs and node.op_type not in MOVING and node.op_type not in ("Cast", "CastLike", "Constant")
    )


def _narrows(node: ir.Node) -> bool:
    """Whether the node casts floats to floats of fewer bytes."""
    read, made = node.inputs[0], node.outputs[0]
    known = [value.dtype for value in (read, made) if value is not None and value.dtype is not None]
    return len(known) == 2 and all(one.is_floating_point() for one in known) and known[1].itemsize < known[0].itemsize


def _named(found: Layers, cause: Cause, listed: tuple[str, ...], candidate: OnnxTap) -> Layers:
    """Returns the comparison with the cause's layer as its first culprit, and the node as that layer's first step."""
    if not cause.agrees and found.culprits:
        first = found.layer(found.culprits[0])
        return replace(found, cause=cause, differences=listed) if cause.node in first.steps else found
    layer = _layer_of(found, cause.node) or _layer_behind(found, cause.node, candidate)
    if layer is None:
        return replace(found, cause=cause, differences=listed)
    steps = (cause.node, *(label for label in layer.steps if label != cause.node))
    new = replace(layer, steps=steps, op=cause.op, verdict="own error")
    layers = tuple(new if one is layer else one for one in found.layers)
    others = tuple(name for name in found.culprits if name != new.name)
    return replace(found, layers=layers, culprits=(new.name, *others), cause=cause, differences=listed)


def _layer_of(found: Layers, label: str) -> Layer | None:
    """Returns the first layer that the node computes, preferably one that is a culprit already."""
    holding = [one for one in found.layers if label in one.steps]
    return next((one for one in holding if one.name in found.culprits), holding[0] if holding else None)


def _layer_behind(found: Layers, label: str, candidate: OnnxTap) -> Layer | None:
    """Returns the first layer that depends on the result of the node. The node may compute a weight, which no layer
    contains."""
    graph = candidate.model.graph
    queue = [value for node in graph if node_label(node) == label for value in node.outputs]
    seen, labels = set(queue), set[str]()
    while queue:
        for use in queue.pop().uses():
            labels.add(node_label(use.node))
            new = [value for value in use.node.outputs if value not in seen]
            seen.update(new)
            queue += new
    return next((one for one in found.layers if labels.intersection(one.steps)), None)


def _listed(found: Layers, matches: GraphMatches) -> tuple[str, ...]:
    if not found.culprits:
        return ()
    labels = found.layer(found.culprits[0]).steps
    rows = [f"{one.said()} at {label}" for label in labels for one in matches.by_node.get(label, ())]
    return tuple(dict.fromkeys(rows))[:_SHOWN]
