"""Finds uniform tensors, which have the same number in every element, such as masks of ones and comparisons that are
always true.

The number is exact in the value's dtype, so operators that round are not followed.
"""

from __future__ import annotations

import operator
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.affine import Affine, affine
from onnxsmith.graph.shapes.value_analysis import MOVING, Analysis

Number = int | float | bool

_EXACT = (
    *(ir.DataType.BOOL, ir.DataType.INT64, ir.DataType.INT32, ir.DataType.UINT8, ir.DataType.INT8),
    *(ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE),
)
"""Lists the dtypes between which a Cast is followed, if the number stays the same."""
_COMPARED = {
    "Equal": operator.eq,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
}


def _filled(_: Uniform, node: ir.Node) -> Number | None:
    value = node.attributes.get("value")
    if value is None:
        return 0.0
    number = None if value.is_ref() else value.as_tensor().numpy().ravel()[0].item()
    return number if number == number else None


def _cast(walk: Uniform, node: ir.Node) -> Number | None:
    number, source, to = walk.of(node.inputs[0]), node.inputs[0], node.outputs[0].dtype
    if number is None or source is None or source.dtype not in _EXACT or to not in _EXACT or to is None:
        return None
    if to is ir.DataType.BOOL:
        return bool(number)
    kind = to.numpy()
    if kind.kind in "iu" and (int(number) != number or not np.iinfo(kind).min <= number <= np.iinfo(kind).max):
        return None
    made: Number = np.asarray(number).astype(kind).item()
    return made if made == number else None


def _where(walk: Uniform, node: ir.Node) -> Number | None:
    condition = walk.of(node.inputs[0])
    if condition is not None:
        return walk.of(node.inputs[1 if condition else 2])
    return walk.joined(node.inputs[1:])


def _and(walk: Uniform, node: ir.Node) -> Number | None:
    found = [walk.of(value) for value in node.inputs]
    return False if False in found else True if None not in found else None


def _not(walk: Uniform, node: ir.Node) -> Number | None:
    number = walk.first(node)
    return None if number is None else not number


def _or(walk: Uniform, node: ir.Node) -> Number | None:
    found = [walk.of(value) for value in node.inputs]
    return True if True in found else False if None not in found else None


def _resized(walk: Uniform, node: ir.Node) -> Number | None:
    """Returns a nearest-neighbour Resize. `tf_crop_and_resize` would fill in another number outside the input."""
    mode, place = node.attributes.get("mode"), node.attributes.get("coordinate_transformation_mode")
    if any(one is not None and one.is_ref() for one in (mode, place)):
        return None
    if mode is not None and mode.as_string() != "nearest":
        return None
    return None if place is not None and place.as_string() == "tf_crop_and_resize" else walk.of(node.inputs[0])


def _at_least(a: Affine, b: Affine) -> bool:
    """Whether every element of `a` is at least the corresponding element of `b`."""
    rises = all(symbols.at_least(step, 0) for step in a.steps) and all(symbols.at_least(0, step) for step in b.steps)
    return rises and symbols.at_least(a.start, b.start)


def _compared(walk: Uniform, node: ir.Node) -> Number | None:
    """Compares the operands. Returns True or False if the answer is the same in every element, else None."""
    a, b = (affine(value) for value in node.inputs)
    if a is None or b is None or node.op_type == "Equal":
        first, second = (walk.of(value) for value in node.inputs)
        return None if first is None or second is None else bool(_COMPARED[node.op_type](first, second))
    if node.op_type in ("Less", "LessOrEqual"):
        a, b = b, a
    if node.op_type in ("Greater", "Less"):
        return True if _is_above(a, b) else False if _at_least(b, a) else None
    return True if _at_least(a, b) else False if _is_above(b, a) else None


def _is_above(a: Affine, b: Affine) -> bool:
    less = symbols.subtract(a.start, 1)
    return less is not None and _at_least(Affine(less, a.steps), b)


def _product(walk: Uniform, node: ir.Node) -> Number | None:
    """Returns 0 for integers times zero. Leaves out floats, because 0 times infinity is NaN."""
    dtype = node.outputs[0].dtype
    if dtype is None or not dtype.is_integer():
        return None
    return 0 if any(walk.of(value) == 0 for value in node.inputs) else None


class Uniform(Analysis[Number]):
    """Finds the number in all elements of a value."""

    rules: ClassVar = {
        **dict.fromkeys(MOVING, Analysis.first),
        **dict.fromkeys(_COMPARED, _compared),
        **dict.fromkeys(("Concat", "Max", "Min"), lambda walk, node: walk.joined(node.inputs)),
        "And": _and,
        "Cast": _cast,
        "ConstantOfShape": _filled,
        "Mul": _product,
        "Not": _not,
        "Or": _or,
        "Resize": _resized,
        "Where": _where,
    }

    def fact(self, value: ir.Value) -> Number | None:
        array = facts.constant(value)
        if array is None:
            return self.computed(value)
        first = array.flat[0] if array.size and array.dtype.kind in "biuf" else None
        if first is None or array.flat[-1] != first or not (array == first).all():
            return None
        number: Number = first.item()
        return number

    def join(self, a: Number, b: Number) -> Number | None:
        """Returns the number if both are the same, with the same sign of zero."""
        return a if a == b and np.copysign(1, a) == np.copysign(1, b) else None


def uniform(value: ir.Value | None) -> Number | None:
    """Returns the number in all elements of a value, never NaN; None if elements differ, or the number is unknown. The
    value may be empty at some sizes."""
    return Uniform().of(value)
