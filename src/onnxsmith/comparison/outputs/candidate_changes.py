"""Finds small changes that may undo the error of a layer: of one attribute, weight or operand, or a left-out node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx_ir as ir

from onnxsmith.base.report.parts.layers import Layer
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.comparison.outputs.graph_matches import GraphMatches
from onnxsmith.comparison.outputs.node_transplant import Undoing
from onnxsmith.comparison.outputs.stored_values import StoredValues, differ, layout
from onnxsmith.comparison.outputs.undoing_patches import (
    NO_SOURCE,
    Source,
    attributes_patch,
    constant_patch,
    layout_patch,
)
from onnxsmith.graph.structure.walk import node_label, op_name
from onnxsmith.runtimes.base import Array, Feeds
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.by_layer.tensor_pairs import is_reshaping
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.rounding_terms import MOVING
from onnxsmith.verification.value_comparison import is_float

_MOST_STEPS = 12
"""How many nodes of a layer are examined. A choice: more are seldom one operation."""
_SHORT = 8
"""How many elements of a constant a text shows. A choice: part of a line."""
_MOST_ORDERED = 2**22
"""How many elements a weight may have for its order to be searched. A choice: some seconds."""


@dataclass(frozen=True)
class Attempt:
    """A change of one node. `edit` makes it, and `changes` describe how the node differs. `rank` orders the attempts of
    one layer. `patch` makes the change in a file; "" if a patch file cannot express it."""

    node: str
    changes: tuple[str, ...]
    edit: Callable[[Undoing], None]
    rank: int = 0
    patch: str = ""


class Attempts:
    """Finds changes for the nodes of a layer. `partners` maps the reference's tensors to the candidate's. `file` is the
    reference's file, if it is one."""

    def __init__(
        self,
        sides: tuple[OnnxTap, OnnxTap],
        matches: GraphMatches,
        feeds: tuple[Feeds, Feeds],
        partners: Mapping[str, str],
        file: str = "",
    ) -> None:
        self._sides, self._matches, self._partners, self._file = sides, matches, partners, file
        self._stored = StoredValues(sides[0], feeds[0]), StoredValues(sides[1], feeds[1])
        self._nodes = {node_label(node): node for node in sides[1].model.graph}
        self._made = {value.name or "" for node in sides[1].model.graph for value in node.outputs}
        self._made |= {value.name or "" for value in sides[1].model.graph.inputs}

    def of(self, layer: Layer) -> list[Attempt]:
        """Returns the changes for a layer, those of a single number or weight first."""
        labels = layer.steps[:_MOST_STEPS]
        nodes = [self._nodes[label] for label in labels if label in self._nodes]
        known = [(node, self._matches.counterparts.get(node_label(node))) for node in nodes]
        self._stored[1].fetch(value for node in nodes for value in node.inputs)
        self._stored[0].fetch(value for _, one in known if one is not None for value in one.node.inputs)
        found: list[Attempt] = []
        for node, one in known:
            if one is None:
                found += self._left_out(node)
                found += self._nearest_weight(node, layer)
            elif one.node.op_type == node.op_type and one.node.domain == node.domain:
                found += self._attributes(node, one.node)
                found += self._constants(node, one.node)
                found += self._operands(node, one.node)
        return sorted(found, key=lambda attempt: attempt.rank)

    def whole(self, layer: Layer) -> Attempt | None:
        """Returns the attempt that computes the layer as in the reference. None if several nodes of the layer compute,
        because the fault could then not be assigned to one."""
        nodes = [self._nodes[label] for label in layer.steps if label in self._nodes]
        depends = self._sides[1].outline.moving
        computing = [
            node
            for node in nodes
            if not (node.op_type in MOVING or is_reshaping(node.op_type) or node.op_type in ("Cast", "Shape"))
            and node.outputs[0].name in depends
        ]
        value = next(
            (v for node in self._sides[0].model.graph for v in node.outputs if v.name == layer.reference), None
        )
        if value is None or not (len(computing) == 1 or len(nodes) == 1):
            return None
        node = computing[0] if computing else nodes[0]
        cuts = {name for name in self._partners if name != layer.reference}
        steps, _ = self._sides[0].outline.segment(layer.reference, cuts)
        ops = ", ".join(step.op for step in steps)
        rows = [row.said() for row in self._matches.by_node.get(node_label(node), ())]
        said = f"its result differs from the result of {ops} in the reference"
        return Attempt(
            node_label(node),
            (*dict.fromkeys(rows), said),
            lambda undoing: undoing.transplant(value, layer.name),
        )

    def _left_out(self, node: ir.Node) -> Iterator[Attempt]:
        """Yields attempts without a node that only the candidate has: its readers read its operand instead."""
        moving = self._sides[1].outline.moving
        if len(node.outputs) != 1 or node.outputs[0].name not in moving:
            return
        label = node_label(node)
        rows = [row for row in self._matches.by_node.get(label, ()) if row.what == "added"]
        made = node.outputs[0]
        for place, read in enumerate(node.inputs):
            if read is None or read.name not in moving:
                continue
            if read.dtype is not None and made.dtype is not None and read.dtype != made.dtype:
                continue
            said = rows[0].said() if rows else f"{op_name(node)} is only in the candidate"
            yield Attempt(label, (said,), partial(Undoing.bypass, output=made.name or "", place=place), 1)

    def _attributes(self, node: ir.Node, one: ir.Node) -> Iterator[Attempt]:
        rows = self._matches.by_node.get(node_label(node), ())
        changed = [row for row in rows if row.what == "attribute" and row.name in {**node.attributes, **one.attributes}]
        for row in changed if len(changed) > 1 else []:
            yield self._set(node, one, (row.name,), (row.said(),))
        if changed:
            yield self._set(node, one, tuple(row.name for row in changed), tuple(row.said() for row in changed))

    def _set(self, node: ir.Node, one: ir.Node, names: tuple[str, ...], said: tuple[str, ...]) -> Attempt:
        output = node.outputs[0].name or ""
        patch = attributes_patch(node_label(node), names, one)
        return Attempt(node_label(node), said, lambda undoing: undoing.set_attributes(output, one, names), 0, patch)

    def _constants(self, node: ir.Node, one: ir.Node) -> Iterator[Attempt]:
        for place, (x, y) in enumerate(zip(one.inputs, node.inputs, strict=False)):
            ours, theirs = self._stored[0].array(x), self._stored[1].array(y)
            if ours is None or theirs is None or x is None or y is None:
                continue
            if is_float(ours) and is_float(theirs) and ours.dtype != theirs.dtype:
                ours = ours.astype(theirs.dtype)
            if ours.dtype == theirs.dtype and differ(ours, theirs):
                yield self._exchanged(node, place, y, ours, theirs, Source(self._file, x.name or "", const_tensor(x)))

    def _exchanged(
        self, node: ir.Node, place: int, value: ir.Value, ours: Array, theirs: Array, source: Source = NO_SOURCE
    ) -> Attempt:
        label, output = node_label(node), node.outputs[0].name or ""
        ordered = layout(ours, theirs) if ours.size <= _MOST_ORDERED else None
        rows = self._matches.by_node.get(label, ())
        known = [row.said() for row in rows if row.what == "weight" and row.name == value.name]
        said, patch = known[0] if known else _said(value.name or "a constant", ours, theirs), ""
        if ordered is not None and ours.size > _SHORT:
            said, patch = f"{value.name}: {ordered[0]}", layout_patch(label, place, ordered[1])
        if not patch:
            patch = constant_patch(value, ours, source)
        return Attempt(label, (said,), lambda undoing: undoing.set_constant(output, place, ours), 0, patch)

    def _operands(self, node: ir.Node, one: ir.Node) -> Iterator[Attempt]:
        label, output = node_label(node), node.outputs[0].name or ""
        rows = {row.name: row for row in self._matches.by_node.get(label, ()) if row.what == "wiring"}
        for place, (x, y) in enumerate(zip(one.inputs, node.inputs, strict=False)):
            row = next((row for slot, row in rows.items() if slot.startswith(f"input {place}")), None)
            if row is None or x is None or y is None or self._stored[0].has(x):
                continue
            name = self._partners.get(x.name or "", "")
            if name in self._made and name != y.name:
                change = partial(Undoing.set_operand, output=output, place=place, name=name)
                yield Attempt(label, (row.said(),), change, 2)

    def _nearest_weight(self, node: ir.Node, layer: Layer) -> Iterator[Attempt]:
        """Yields attempts that exchange a weight of a node without a counterpart for a similar one of the reference.
        The weight becomes the most similar one of the layer's nodes in the reference, unless an equal one is there."""
        stored = self._of_layer(layer)
        for place, value in enumerate(node.inputs):
            theirs = self._stored[1].array(value)
            if theirs is None or value is None or not is_float(theirs) or theirs.size < 2:
                continue
            forms = [form for one in stored for form in _forms(one, theirs)]
            if not forms or any(not differ(form, theirs) for form in forms):
                continue
            nearest = min(forms, key=lambda form: int(np.count_nonzero(widen(form) != widen(theirs))))
            yield self._exchanged(node, place, value, nearest, theirs)

    def _of_layer(self, layer: Layer) -> list[Array]:
        """Returns the weights of a layer's nodes in the reference."""
        cuts = {name for name in self._partners if name != layer.reference}
        steps, _ = self._sides[0].outline.segment(layer.reference, cuts)
        labels = {step.label for step in steps}
        nodes = [node for node in self._sides[0].model.graph if node_label(node) in labels]
        arrays = [self._stored[0].array(value) for node in nodes for value in node.inputs]
        return [one for one in arrays if one is not None and is_float(one)]

    def weights_are_known(self, layer: Layer) -> frozenset[str]:
        """Returns the nodes of a layer all of whose weights also occur in the layer's reference nodes."""
        stored, found = self._of_layer(layer), set()
        for label in layer.steps[:_MOST_STEPS]:
            node = self._nodes.get(label)
            arrays = [self._stored[1].array(value) for value in node.inputs] if node is not None else []
            weights = [one for one in arrays if one is not None and is_float(one) and one.size > 1]
            if weights and all(any(not differ(f, w) for one in stored for f in _forms(one, w)) for w in weights):
                found.add(label)
        return frozenset(found)


def _forms(one: Array, other: Array) -> Iterator[Array]:
    """Yields a weight in the shape and dtype of another weight, as it is and transposed."""
    if one.size == other.size:
        yield one.reshape(other.shape).astype(other.dtype)
        if one.ndim == 2:
            yield one.T.reshape(other.shape).astype(other.dtype)


def _said(name: str, ours: Array, theirs: Array) -> str:
    if ours.size <= _SHORT and theirs.size <= _SHORT:
        return f"{name} {_text(ours)} → {_text(theirs)}"
    if ours.shape != theirs.shape:
        return f"{name} {list(ours.shape)} → {list(theirs.shape)}"
    wide, other = widen(ours), widen(theirs)
    count = int(np.count_nonzero(wide != other))
    return f"{name}: {count} of {ours.size} elements differ, by at most {float(np.max(np.abs(wide - other))):.3g}"


def _text(array: Array) -> str:
    numbers = [f"{number:.6g}" if array.dtype.kind == "f" else str(number) for number in array.ravel().tolist()]
    return numbers[0] if array.ndim == 0 else f"[{', '.join(numbers)}]"
