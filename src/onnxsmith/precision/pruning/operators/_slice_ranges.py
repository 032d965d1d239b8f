"""What a Slice takes of each axis."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes.known_integers import Elements, elements
from onnxsmith.precision.pruning.channel_links import rank, static
from onnxsmith.precision.pruning.operators.base import can_resize, operand


@dataclass(frozen=True)
class Range:
    """The elements from `begin` until before `end`; `place` is the position of the axis in the operands."""

    begin: int
    end: int
    step: int = 1
    place: int = 0


def ranges(node: ir.Node) -> dict[int, Range | None] | None:
    """The range of each axis that a Slice names, None for one that is computed; None if the axes are computed, or if
    the operands cannot be changed."""
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
    """The numbers of an operand, an attribute in older opsets; None for each that is not known."""
    if _NAMES[index] in node.attributes:
        return [int(number) for number in node.attributes[_NAMES[index]].as_ints()]
    return elements(operand(node, index))
