"""Finds uniform tensors, which have the same number in every element, such as masks of ones and comparisons that are
always true.

The search walks up from a value, through at most `_MOST_NODES` nodes. The number is exact in the value's dtype, so
operators that round are not followed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.affine import Affine, affine

Number = int | float | bool

_MOST_NODES = 48
"""Nodes that one search may visit. A choice that bounds the cost."""
_EXACT = (
    *(ir.DataType.BOOL, ir.DataType.INT64, ir.DataType.INT32, ir.DataType.UINT8, ir.DataType.INT8),
    *(ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE),
)
"""Dtypes between which a Cast is followed, if the number stays the same."""


def uniform(value: ir.Value | None) -> Number | None:
    """Returns the number in all elements of a value, never NaN; None if elements differ, or the number is unknown. The
    value may be empty at some sizes."""
    return _Walk().look(value)


class _Walk:
    """One walk upwards, which may still visit `left` nodes."""

    def __init__(self) -> None:
        self.left = _MOST_NODES

    def look(self, value: ir.Value | None) -> Number | None:
        if value is None:
            return None
        array = facts.constant(value)
        if array is not None:
            first = array.flat[0] if array.size and array.dtype.kind in "biuf" else None
            if first is None or array.flat[-1] != first or not (array == first).all():
                return None
            number: Number = first.item()
            return number
        node = value.producer()
        self.left -= 1
        rule = _RULES.get(node.op_type) if node is not None and not node.domain and self.left >= 0 else None
        return rule(self, node) if rule is not None and node is not None else None


def _passed_on(walk: _Walk, node: ir.Node) -> Number | None:
    return walk.look(node.inputs[0])


def _filled(_: _Walk, node: ir.Node) -> Number | None:
    value = node.attributes.get("value")
    if value is None:
        return 0.0
    number = None if value.is_ref() else value.as_tensor().numpy().ravel()[0].item()
    return number if number == number else None


def _cast(walk: _Walk, node: ir.Node) -> Number | None:
    number, source, to = walk.look(node.inputs[0]), node.inputs[0], node.outputs[0].dtype
    if number is None or source is None or source.dtype not in _EXACT or to not in _EXACT or to is None:
        return None
    if to is ir.DataType.BOOL:
        return bool(number)
    kind = to.numpy()
    if kind.kind in "iu" and (int(number) != number or not np.iinfo(kind).min <= number <= np.iinfo(kind).max):
        return None
    made: Number = np.asarray(number).astype(kind).item()
    return made if made == number else None


def _where(walk: _Walk, node: ir.Node) -> Number | None:
    condition = walk.look(node.inputs[0])
    if condition is not None:
        return walk.look(node.inputs[1 if condition else 2])
    first, second = (walk.look(value) for value in node.inputs[1:])
    return first if first is not None and first == second and _sign(first) == _sign(second) else None


def _sign(number: Number | None) -> float:
    return float(np.copysign(1, number)) if number is not None else 0.0


def _and(walk: _Walk, node: ir.Node) -> Number | None:
    found = [walk.look(value) for value in node.inputs]
    return False if False in found else True if None not in found else None


def _or(walk: _Walk, node: ir.Node) -> Number | None:
    found = [walk.look(value) for value in node.inputs]
    return True if True in found else False if None not in found else None


def _not(walk: _Walk, node: ir.Node) -> Number | None:
    number = walk.look(node.inputs[0])
    return None if number is None else not number


def _same(walk: _Walk, node: ir.Node) -> Number | None:
    """Returns the number if all operands hold the same number, with the same sign of zero."""
    found = [walk.look(value) for value in node.inputs]
    first = found[0]
    return first if first is not None and all(n == first and _sign(n) == _sign(first) for n in found) else None


def _resized(walk: _Walk, node: ir.Node) -> Number | None:
    """Returns a nearest-neighbour Resize. `tf_crop_and_resize` would fill in another number outside the input."""
    mode, place = node.attributes.get("mode"), node.attributes.get("coordinate_transformation_mode")
    if any(one is not None and one.is_ref() for one in (mode, place)):
        return None
    if mode is not None and mode.as_string() != "nearest":
        return None
    return None if place is not None and place.as_string() == "tf_crop_and_resize" else walk.look(node.inputs[0])


def _at_least(a: Affine, b: Affine) -> bool:
    """Whether every element of `a` is at least the corresponding element of `b`."""
    rises = all(symbols.at_least(step, 0) for step in a.steps) and all(symbols.at_least(0, step) for step in b.steps)
    return rises and symbols.at_least(a.start, b.start)


def _compared(node: ir.Node, *, strictly: bool) -> Number | None:
    """Compares the operands. Returns True or False if the answer is the same in every element, else None."""
    a, b = (affine(value) for value in node.inputs)
    if a is None or b is None:
        return None
    if strictly:
        return True if _is_above(a, b) else False if _at_least(b, a) else None
    return True if _at_least(a, b) else False if _is_above(b, a) else None


def _is_above(a: Affine, b: Affine) -> bool:
    less = symbols.subtract(a.start, 1)
    return less is not None and _at_least(Affine(less, a.steps), b)


def _product(walk: _Walk, node: ir.Node) -> Number | None:
    """Returns 0 for integers times zero. Leaves out floats, because 0 times infinity is NaN."""
    dtype = node.outputs[0].dtype
    if dtype is None or not dtype.is_integer():
        return None
    return 0 if any(walk.look(value) == 0 for value in node.inputs) else None


def _opposite(number: Number | None) -> Number | None:
    return None if number is None else not number


_RULES: dict[str, Callable[[_Walk, ir.Node], Number | None]] = {
    **dict.fromkeys(
        (
            *("Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Slice", "Split"),
            *("Squeeze", "Tile", "Transpose", "Unsqueeze"),
        ),
        _passed_on,
    ),
    "And": _and,
    "Cast": _cast,
    "Concat": _same,
    "ConstantOfShape": _filled,
    "Greater": lambda _, node: _compared(node, strictly=True),
    "GreaterOrEqual": lambda _, node: _compared(node, strictly=False),
    "Less": lambda _, node: _opposite(_compared(node, strictly=False)),
    "LessOrEqual": lambda _, node: _opposite(_compared(node, strictly=True)),
    "Max": _same,
    "Min": _same,
    "Mul": _product,
    "Not": _not,
    "Or": _or,
    "Resize": _resized,
    "Where": _where,
}
