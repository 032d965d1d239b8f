"""Follows channels through operators that join tensors or take parts of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.known_integers import Elements, elements
from onnxsmith.precision.pruning.channel_links import Cuts, Indices, Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators.base import Operator, can_resize, integer, operand, origin


@dataclass(frozen=True)
class Range:
    """The elements from `begin` up to, not including, `end`. `place` is the position of the axis in the operands."""

    begin: int
    end: int
    step: int = 1
    place: int = 0


def ranges(node: ir.Node) -> dict[int, Range | None] | None:
    """Returns the range of each axis that a Slice names; a computed range is None. Returns None if the axes are
    computed, or if the operands cannot be changed."""
    starts, ends, axes, steps = (_numbers(node, index) for index in range(1, 5))
    if starts is None or ends is None or not (can_resize(node, 1) and can_resize(node, 2)):
        return None
    count = rank(node.inputs[0]) or 0
    if _is_given(node, 3):
        if axes is None or None in axes:
            return None
    else:
        axes = [*range(len(starts))]
    if steps is None:
        steps = [None if _is_given(node, 4) else 1] * len(starts)
    found: dict[int, Range | None] = {}
    for place, (axis, begin, end, step) in enumerate(zip(axes, starts, ends, steps, strict=True)):
        assert isinstance(axis, int)
        size = static(node.inputs[0], axis % count)
        known = isinstance(begin, int) and isinstance(end, int) and isinstance(step, int) and size is not None
        found[axis % count] = _within(begin, end, step, size, place) if known else None  # type: ignore[arg-type]
    return found


def _within(begin: int, end: int, step: int, size: int, place: int) -> Range:
    if step != 1:
        return Range(begin, end, step, place)
    low, high, _ = slice(begin, end).indices(size)
    return Range(low, max(low, high), 1, place)


_NAMES = ("", "starts", "ends", "axes", "steps")


def _is_given(node: ir.Node, index: int) -> bool:
    return _NAMES[index] in node.attributes or operand(node, index) is not None


def _numbers(node: ir.Node, index: int) -> Elements | None:
    """Returns the numbers of an operand, or of the attribute in older opsets. Unknown numbers are None."""
    if _NAMES[index] in node.attributes:
        return [int(number) for number in node.attributes[_NAMES[index]].as_ints()]
    return elements(operand(node, index))


class Concatenation(Operator):
    """Concat: the channels of the operands, one operand after the other.

    Along the joined axis, each operand's channels are those of a part of the result; operands with fixed channels keep
    theirs. Along other axes, channels of all operands are removed together.
    """

    ops = ("Concat",)

    def link(self, node: ir.Node, links: Links) -> None:
        operands, y = [value for value in node.inputs if value is not None], node.outputs[0]
        count = rank(y) or 0
        along = integer(node, "axis", 0) % max(1, count)
        for axis in range(count):
            if not any(links.is_live(value, axis) for value in operands) or static(y, axis) is None:
                continue
            if axis != along:
                self._together(links, operands, y, axis)
                continue
            begin = 0
            for value in operands:
                size = static(value, axis) or 0
                if links.is_live(value, axis):
                    links.tie(value, axis, y, axis, None, np.arange(begin, begin + size))
                begin += size

    def _together(self, links: Links, operands: list[ir.Value], y: ir.Value, axis: int) -> None:
        for value in operands:
            if links.is_live(value, axis) or is_weight(value):
                links.tie(value, axis, y, axis)
            else:
                links.pin(y, axis, f"the channels are joined to {value.name!r}, {origin(value)}, whose size is fixed")


_SPLIT_OPERAND = 13
"""The first opset in which the sizes of Split are an operand (ONNX Changelog.md)."""


class Parts(Operator):
    """Split, Slice and Gather: parts of an axis.

    A channel of the operand is tied to its channel in the part that contains it. Elements that no part takes are tied
    to nothing here.
    """

    ops = ("Gather", "Slice", "Split")

    def link(self, node: ir.Node, links: Links) -> None:
        x = node.inputs[0]
        assert x is not None
        if not links.live_axes(x):
            return
        if node.op_type == "Split":
            self._split(node, x, links)
        elif node.op_type == "Slice":
            self._slice(node, x, links)
        else:
            self._gather(node, x, links)

    def _split(self, node: ir.Node, x: ir.Value, links: Links) -> None:
        along = integer(node, "axis", 0) % (rank(x) or 1)
        for axis in links.live_axes(x):
            begin = 0
            for y in node.outputs:
                size = static(y, axis)
                if size is None:
                    return
                taken = np.arange(begin, begin + size) if axis == along else None
                links.tie(x, axis, y, axis, taken)
                begin += size

    def _slice(self, node: ir.Node, x: ir.Value, links: Links) -> None:
        cut, y = ranges(node), node.outputs[0]
        if cut is None:
            return
        for axis in links.live_axes(x):
            one = cut.get(axis, Range(0, static(x, axis) or 0))
            if one is None:
                links.pin(x, axis, f"{links.label} selects channels by computed indices")
            elif one.step != 1:
                links.pin(x, axis, "Slice selects channels with a step other than 1")
            elif static(y, axis) == one.end - one.begin:
                links.tie(x, axis, y, axis, np.arange(one.begin, one.end))

    def _gather(self, node: ir.Node, x: ir.Value, links: Links) -> None:
        along, y = integer(node, "axis", 0) % (rank(x) or 1), node.outputs[0]
        count = rank(node.inputs[1])
        if count is None:
            return
        for axis in links.live_axes(x):
            if axis != along:
                links.tie(x, axis, y, axis if axis < along else axis + count - 1)
                continue
            taken = _taken(node)
            if taken is None:
                links.pin(x, axis, "Gather selects single channels, or channels by computed indices")
            else:
                links.tie(x, axis, y, axis, taken)

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        if node.op_type == "Split":
            self._rewrite_split(node, cuts)
        elif node.op_type == "Slice":
            self._rewrite_slice(node, cuts)
        else:
            self._rewrite_gather(node, cuts)

    def _rewrite_split(self, node: ir.Node, cuts: Cuts) -> None:
        axis = integer(node, "axis", 0) % (rank(node.inputs[0]) or 1)
        if cuts.of(node.inputs[0], axis) is None:
            return
        kept = [cuts.of(y, axis) for y in node.outputs]
        sizes = [(static(y, axis) or 0) if one is None else len(one) for y, one in zip(node.outputs, kept, strict=True)]
        node.attributes.pop("num_outputs", None)
        if facts.opset(node) < _SPLIT_OPERAND:
            node.attributes["split"] = ir.AttrInt64s("split", sizes)
        else:
            cuts.replace(node, 1, sizes)

    def _rewrite_slice(self, node: ir.Node, cuts: Cuts) -> None:
        begins: dict[int, int] = {}
        ends: dict[int, int] = {}
        for axis, one in (ranges(node) or {}).items():
            kept = cuts.of(node.inputs[0], axis)
            if kept is not None and one is not None:
                begins[one.place], ends[one.place] = int(np.sum(kept < one.begin)), int(np.sum(kept < one.end))
        if "starts" in node.attributes:
            for name, changes in (("starts", begins), ("ends", ends)):
                old = node.attributes[name].as_ints()
                node.attributes[name] = ir.AttrInt64s(name, [changes.get(at, old[at]) for at in range(len(old))])
            return
        _widen(node, cuts)
        cuts.resize(node, 1, begins)
        cuts.resize(node, 2, ends)

    def _rewrite_gather(self, node: ir.Node, cuts: Cuts) -> None:
        axis = integer(node, "axis", 0) % (rank(node.inputs[0]) or 1)
        kept, results = cuts.of(node.inputs[0], axis), cuts.of(node.outputs[0], axis)
        taken = _taken(node)
        if kept is None or taken is None:
            return
        left = taken if results is None else taken[results]
        cuts.replace(node, 1, [int(index) for index in np.searchsorted(kept, left)])


def _taken(node: ir.Node) -> Indices | None:
    array = facts.constant(node.inputs[1])
    axis = integer(node, "axis", 0) % (rank(node.inputs[0]) or 1)
    if array is None or array.ndim != 1 or not len(array):
        return None
    return np.asarray(array, np.int64) % (static(node.inputs[0], axis) or 1)


def _widen(node: ir.Node, cuts: Cuts) -> None:
    """Makes all constant operands of a Slice int64, because they must share one dtype and changed operands are
    int64."""
    for index in range(1, len(node.inputs)):
        array = facts.constant(operand(node, index))
        if array is not None and array.dtype != np.int64:
            cuts.replace(node, index, [int(number) for number in array.ravel()])
