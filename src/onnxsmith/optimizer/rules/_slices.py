"""Reads Slices whose bounds are numbers as a range along each axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import facts

TO_THE_END = 2**63 - 1
"""An end beyond every dimension."""
_OPEN = 2**31 - 1
"""Exporters write this, or more, for an open end."""


@dataclass(frozen=True)
class Range:
    """The range start:end:step along an axis."""

    start: int
    end: int
    step: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether the range has step 1 and bounds that are counted from the beginning."""
        return self.step == 1 and self.start >= 0 and self.end >= 0

    def then(self, inner: Range) -> Range | None:
        """Returns the range of x[self][inner]; None if it depends on the dimension's size."""
        if not (self.is_plain and inner.is_plain):
            return None
        end = TO_THE_END if inner.end >= _OPEN else self.start + inner.end
        return Range(self.start + inner.start, min(end, self.end))


def ranges(node: ir.Node) -> dict[int, Range] | None:
    """Returns the ranges of a Slice by axis, counted from the front; None if they are not known numbers. If the
    dimension is known, ranges with step 1 are plain. Returns None before opset 10, where bounds were attributes."""
    if len(node.inputs) < 3 or node.domain:
        return None
    data = facts.dims(node.inputs[0])
    starts, ends = _numbers(node, 1), _numbers(node, 2)
    if data is None or starts is None or ends is None or len(starts) != len(ends):
        return None
    axes = _numbers(node, 3, list(range(len(starts))))
    steps = _numbers(node, 4, [1] * len(starts))
    if axes is None or steps is None or not len(axes) == len(steps) == len(starts):
        return None
    found: dict[int, Range] = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        place = axis + len(data) if axis < 0 else axis
        if not 0 <= place < len(data) or place in found or step == 0:
            return None
        found[place] = _counted(start, end, step, data[place])
    return found


def _numbers(node: ir.Node, index: int, default: list[int] | None = None) -> list[int] | None:
    if len(node.inputs) <= index or node.inputs[index] is None:
        return default
    elements = facts.integers(node.inputs[index])
    numbers = [element for element in elements or () if isinstance(element, int)]
    return numbers if elements is not None and len(numbers) == len(elements) else None


def _counted(start: int, end: int, step: int, dim: facts.Element | None) -> Range:
    """Returns the range with bounds that are counted from the beginning, if the dimension is known."""
    if step == 1 and isinstance(dim, int):
        start, end = (max(bound + dim, 0) if bound < 0 else bound for bound in (start, end))
        return Range(min(start, dim), min(end, dim))
    return Range(start, end, step)


def inputs(found: Mapping[int, Range]) -> dict[str, list[int]]:
    """Returns starts, ends, axes and steps of a Slice, in the order of its inputs."""
    axes = sorted(found)
    return {
        "starts": [found[axis].start for axis in axes],
        "ends": [found[axis].end for axis in axes],
        "axes": axes,
        "steps": [found[axis].step for axis in axes],
    }


def parts(node: ir.Node) -> list[ir.Node]:
    """Returns the Slices of the node's graph that together cut one value into parts without gaps, in steps of 1, along
    one axis of known size, in order. Returns an empty list if there are none, or the node is not one of them."""
    source, own = node.inputs[0], ranges(node)
    dims = facts.dims(source)
    if source is None or own is None or dims is None or len(own) != 1:
        return []
    (axis,) = own
    size = dims[axis]
    at: dict[int, tuple[Range, ir.Node]] = {}
    for reader in source.consumers():
        found = ranges(reader) if reader.op_type == "Slice" and reader.graph is node.graph else None
        if found is None or list(found) != [axis] or not found[axis].is_plain or reader.inputs[0] is not source:
            continue
        if found[axis].start in at and at[found[axis].start][0].end != found[axis].end:
            return []
        at.setdefault(found[axis].start, (found[axis], reader))
    place, order = 0, list[ir.Node]()
    while place in at and at[place][0].end > place:
        order.append(at[place][1])
        place = at[place][0].end
    return order if place == size and len(order) > 1 and node in order else []
