"""Finds the scalar that limits how far integers count along an axis."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.affine import affine

_MOST_NODES = 16
"""The most nodes that one search follows back. A choice that bounds the cost."""


def limit_of(value: ir.Value | None, axis: int) -> ir.Value | None:
    """Returns the limit up to which a value counts 0, 1, 2, … along an axis: the limit of its Range, or the end of its
    Slice; None if unknown. It is a scalar, or a tensor of one element."""
    for _ in range(_MOST_NODES):
        node = value.producer() if value is not None else None
        if node is None or node.domain:
            return None
        match node.op_type:
            case "Range":
                return node.inputs[1]
            case "Slice":
                return _end(node, axis)
            case "Cast" | "Identity":
                value = node.inputs[0]
            case "Expand":
                value, axis = node.inputs[0], axis - _more(node)
            case "Unsqueeze" | "Squeeze" | "Reshape":
                value, axis = node.inputs[0], _axis_before(node, axis)
            case "Add" | "Sub" | "Mul":
                value, axis = _counting_operand(node, axis)
            case _:
                return None
        if axis < 0:
            return None
    return None


def _end(node: ir.Node, axis: int) -> ir.Value | None:
    """Returns the end of a Slice along one axis only, from 0 on."""
    starts = facts.integers(node.inputs[1]) if len(node.inputs) > 2 else None
    axes = facts.integers(node.inputs[3]) if len(node.inputs) > 3 else (0,)
    dims = facts.dims(node.inputs[0])
    if starts != (0,) or axes is None or dims is None or len(axes) != 1 or not isinstance(axes[0], int):
        return None
    return node.inputs[2] if axes[0] % len(dims) == axis else None


def _more(node: ir.Node) -> int:
    """Returns how many axes more the result has than the data."""
    before, after = facts.dims(node.inputs[0]), facts.dims(node.outputs[0])
    return len(after or ()) - len(before or ())


def _axis_before(node: ir.Node, axis: int) -> int:
    """Returns the axis of the data that becomes this axis, if only axes of size 1 are added or removed; -1 if
    unknown."""
    before, after = facts.dims(node.inputs[0]), facts.dims(node.outputs[0])
    if before is None or after is None or after[axis] == 1:
        return -1
    places = [at for at, dim in enumerate(before) if dim != 1]
    place = sum(dim != 1 for dim in after[:axis])
    return places[place] if place < len(places) else -1


def _counting_operand(node: ir.Node, axis: int) -> tuple[ir.Value | None, int]:
    """Returns the operand that counts along the axis, and its axis."""
    rank = len(facts.dims(node.outputs[0]) or ())
    for value in node.inputs:
        found = affine(value)
        at = -1 if found is None else axis - rank + len(found.steps)
        if found is not None and at >= 0 and found.steps[at] != 0:
            return value, at
    return None, -1
