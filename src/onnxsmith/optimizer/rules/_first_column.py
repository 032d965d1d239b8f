"""Proves that the first column of a mask has the same truth value in every row, so that every query sees its key, or
none."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.affine import Affine, affine
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.optimizer.rules._patterns import integer

_DEEPEST = 8
"""The most operators that are followed back. A choice that bounds the cost."""
_ORDERED = {
    "Less": (True, 1),
    "LessOrEqual": (True, 0),
    "Greater": (False, 1),
    "GreaterOrEqual": (False, 0),
}
"""Comparisons: whether the second operand must be the larger, and the least difference."""


def sees_a_key(condition: ir.Value | None, wanted: bool) -> bool:
    """Whether at least one element of each row of a Boolean condition is `wanted`. Empty rows are allowed."""
    array = facts.constant(condition)
    if array is not None:
        return array.dtype.kind == "b" and array.ndim > 0 and bool((array == wanted).any(axis=-1).all())
    return is_first_column(condition, wanted=wanted)


def is_first_column(value: ir.Value | None, *, wanted: bool, depth: int = _DEEPEST) -> bool:
    """Whether the first element of each row, along the last axis, is `wanted`. A number counts as true if it is not
    0."""
    array = facts.constant(value)
    if array is not None:
        return array.ndim > 0 and array.dtype.kind in "biuf" and bool(((array[..., :1] != 0) == wanted).all())
    number = uniform(value)
    if number is not None:
        return bool(number) == wanted
    node = value.producer() if value is not None else None
    if node is None or node.domain or depth == 0:
        return False
    source = node.inputs[0]
    match node.op_type:
        case "Not":
            return is_first_column(source, wanted=not wanted, depth=depth - 1)
        case "Cast" | "Identity" | "Expand":
            return _is_cast_exactly(node) and is_first_column(source, wanted=wanted, depth=depth - 1)
        case "Unsqueeze":
            return keeps_rows(node) and is_first_column(source, wanted=wanted, depth=depth - 1)
        case "Equal":
            a, b = node.inputs
            other = b if uniform(a) == 0 else a if uniform(b) == 0 else None
            return other is not None and is_first_column(other, wanted=not wanted, depth=depth - 1)
        case "And" | "Or":
            found = (is_first_column(one, wanted=wanted, depth=depth - 1) for one in node.inputs)
            return all(found) if (node.op_type == "And") == wanted else any(found)
        case "Slice":
            return _starts_at_0(node) and is_first_column(source, wanted=wanted, depth=depth - 1)
        case "Trilu":
            return _of_triangle(node, wanted)
        case "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual":
            return _of_comparison(node, wanted)
        case _:
            return False


def keeps_rows(node: ir.Node) -> bool:
    """Whether each row of the result, along the last axis, consists of the elements of one row of the input, perhaps
    repeated."""
    if node.op_type == "Unsqueeze":
        axes, dims = facts.integers(node.inputs[1] if len(node.inputs) > 1 else None), facts.dims(node.outputs[0])
        return axes is not None and dims is not None and not {-1, len(dims) - 1} & set(axes)
    return node.op_type in ("Expand", "Identity")


def _is_cast_exactly(node: ir.Node) -> bool:
    """Whether a Cast keeps zeros and non-zeros: whether it casts from bool or integers, or to bool."""
    source = node.inputs[0]
    if node.op_type != "Cast" or source is None or source.dtype is None:
        return node.op_type != "Cast"
    to = node.outputs[0].dtype
    return to is ir.DataType.BOOL or source.dtype is ir.DataType.BOOL


def _starts_at_0(node: ir.Node) -> bool:
    """Whether a Slice keeps the first column in place: whether it does not cut the last axis, or cuts it from 0 on."""
    dims = facts.dims(node.inputs[0])
    if len(node.inputs) < 4 or dims is None:
        return False
    starts, axes = facts.integers(node.inputs[1]), facts.integers(node.inputs[3])
    steps = facts.integers(node.inputs[4]) if len(node.inputs) > 4 else (1,) * len(axes or ())
    if starts is None or axes is None or steps is None:
        return False
    cut = [(start, step) for start, axis, step in zip(starts, axes, steps, strict=True) if axis in (-1, len(dims) - 1)]
    return all(start == 0 and isinstance(step, int) and step > 0 for start, step in cut)


def _of_triangle(node: ir.Node, wanted: bool) -> bool:
    """Whether a Trilu makes the first column `wanted`. An upper triangle above the diagonal has zeros there; a lower
    triangle with the diagonal keeps the input's column."""
    given = node.inputs[1] if len(node.inputs) > 1 else None
    diagonal = 0 if given is None else (facts.integers(given) or (None,))[0]
    if not isinstance(diagonal, int):
        return False
    if integer(node, "upper", 1) == 1:
        return diagonal >= 1 and not wanted
    return integer(node, "upper", 1) == 0 and diagonal >= 0 and is_first_column(node.inputs[0], wanted=wanted)


def _of_comparison(node: ir.Node, wanted: bool) -> bool:
    """Whether a comparison makes the first column `wanted`. Along the axes before the last, the positions of one
    operand must rise or stay, and those of the other must be equal."""
    first, second = (affine(value) for value in node.inputs)
    if first is None or second is None:
        return False
    rises, apart = _ORDERED[node.op_type]
    low, high = (first, second) if rises else (second, first)
    if not wanted:
        low, high, apart = high, low, 1 - apart
    rank = max(len(low.steps), len(high.steps))
    least = symbols.subtract(high.start, apart)
    flat = all(step == 0 for step in _in_front(low, rank))
    return (
        least is not None
        and flat
        and all(symbols.at_least(step, 0) for step in _in_front(high, rank))
        and symbols.at_least(least, low.start)
    )


def _in_front(value: Affine, rank: int) -> list[facts.Element]:
    """Returns the steps along all axes but the last, of a value that is broadcast to this rank."""
    return [*(0,) * (rank - len(value.steps)), *value.steps][:-1]
