"""Which values an input may take, read from what the graph does with it.

Random integers in a Gather's index are out of range, zeros everywhere test nothing. So an input is followed through
nodes that keep its values to those that limit them: an index by the size of what it indexes, a comparison by the
constant it is compared with, a mask by being turned into bool.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

_KEEPS_VALUES = {
    "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice", "Concat", "Expand", "Tile",
    "Gather", "Split", "Clip", "Abs",
}  # fmt: skip
_SHAPE_OPERANDS = {
    "Reshape": (1,), "Expand": (1,), "ConstantOfShape": (0,), "Tile": (1,), "TopK": (1,), "Range": (0, 1, 2),
    "Resize": (3,), "OneHot": (1,), "Pad": (1,), "Slice": (1, 2, 4), "Upsample": (),
}  # fmt: skip
_INDEX_OPERANDS = {"Gather": 1, "GatherElements": 1, "ScatterElements": 1, "Scatter": 1}
_COMPARES = {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"}
_SMALL = 4
_FAR = 4096
_LOWEST, _HIGHEST = -(2**31), 2**31


@dataclass(frozen=True)
class Allowed:
    """Integers from `low` to `high`, both included, or one of `choices` when there are any; `why` names the node."""

    low: int
    high: int
    choices: tuple[int, ...] = ()
    why: str = "nothing in the graph limits it"


def allowed(value: ir.Value) -> Allowed:
    """What an integer input may be."""
    low, high, why = _LOWEST, _HIGHEST, ""
    choices: list[int] = []
    seen: set[int] = set()
    queue = deque([(value, 0)])
    while queue and len(seen) < _FAR:
        at, shift = queue.popleft()
        if id(at) in seen:
            continue
        seen.add(id(at))
        for node, index in at.uses():
            limit = _limit(node, index)
            if limit is not None:
                if limit[0] - shift > low or limit[1] - shift < high:
                    why = f"{node.op_type} {node.name or ''}".strip()
                low, high = max(low, limit[0] - shift), min(high, limit[1] - shift)
            constants = _compared_with(node, index)
            choices += [constant - shift for constant in constants]
            if constants and not why:
                why = f"{node.op_type} {node.name or ''}".strip()
            queue += [(output, shift + step) for output, step in _onward(node, index)]
    least, most = _bounds(value.dtype)
    if low > _LOWEST or high < _HIGHEST:
        low, high = max(low, least), min(high, most)
    return _settle(low, high, [choice for choice in choices if least <= choice <= most], why)


def _bounds(dtype: ir.DataType | None) -> tuple[int, int]:
    """The least and the most that the dtype holds, as far as these limits reach."""
    if dtype is None or not dtype.is_integer():
        return _LOWEST, _HIGHEST
    bits = dtype.bitwidth
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_signed() else (0, 2**bits - 1)
    return max(low, _LOWEST), min(high, _HIGHEST)


def _settle(low: int, high: int, choices: list[int], why: str) -> Allowed:
    inside = [choice for choice in dict.fromkeys(choices) if low <= choice <= high]
    if inside:
        others = [inside[-1] + 1, inside[0] - 1]
        inside += [other for other in others if low <= other <= high and other not in inside][:1]
        return Allowed(min(inside), max(inside), tuple(inside), why)
    if low > high or (low == _LOWEST and high == _HIGHEST):
        return Allowed(0, _SMALL)
    return Allowed(max(low, 0) if high >= 0 else low, high, (), why)


def _limit(node: ir.Node, index: int) -> tuple[int, int] | None:
    """The values that operand `index` of the node may take, when the operator limits them."""
    op = node.op_type
    if _INDEX_OPERANDS.get(op) == index:
        size = _size(node.inputs[0], _int(node, "axis", 0))
        return (0, size - 1) if size else None
    if op in ("GatherND", "ScatterND") and index == 1:
        size = _smallest_indexed(node)
        return (0, size - 1) if size else None
    if op == "OneHot" and index == 0:
        depth = _constant(node.inputs[1])
        return (0, int(depth[0]) - 1) if depth is not None and depth.size == 1 else None
    if op == "Cast" and _int(node, "to", 0) == ir.DataType.BOOL.value:
        return (0, 1)
    if op == "Sub" and index == 1 and _is_one(node.inputs[0]):
        return (0, 1)
    if index in _SHAPE_OPERANDS.get(op, ()):
        return (1, _SMALL)
    return None


def _smallest_indexed(node: ir.Node) -> int:
    """The smallest axis that the index tuples of a GatherND or ScatterND reach into; 0 when it is not known."""
    data, indices = node.inputs[0], node.inputs[1]
    if data is None or data.shape is None or indices is None or indices.shape is None or not len(indices.shape):
        return 0
    begin, count = _int(node, "batch_dims", 0), indices.shape[-1]
    axes = range(begin, begin + count if isinstance(count, int) else len(data.shape))
    return min((_size(data, axis) for axis in axes), default=0)


def _compared_with(node: ir.Node, index: int) -> list[int]:
    if node.op_type not in _COMPARES or len(node.inputs) != 2:
        return []
    constant = _constant(node.inputs[1 - index])
    if constant is None or constant.size > 8:
        return []
    return [int(number) for number in constant if float(number).is_integer() and abs(float(number)) < 2**31]


def _onward(node: ir.Node, index: int) -> list[tuple[ir.Value, int]]:
    """Outputs that carry the operand's values on, with what was added to them."""
    if node.op_type in ("Add", "Sub") and len(node.inputs) == 2:
        constant = _constant(node.inputs[1 - index])
        if constant is None or constant.size != 1 or (node.op_type == "Sub" and index == 1):
            return []
        if not float(constant[0]).is_integer():
            return []
        step = int(constant[0])
        return [(node.outputs[0], step if node.op_type == "Add" else -step)]
    first = node.op_type != "Concat" and index > 0
    if node.op_type not in _KEEPS_VALUES or first:
        return []
    return [(output, 0) for output in node.outputs]


def _constant(value: ir.Value | None) -> npt.NDArray[np.float64] | None:
    tensor = ir.convenience.get_const_tensor(value) if value is not None else None
    if tensor is None or tensor.size > _FAR or tensor.dtype == ir.DataType.STRING:
        return None
    return np.asarray(tensor.numpy()).astype(np.float64).ravel()


def _is_one(value: ir.Value | None) -> bool:
    constant = _constant(value)
    return constant is not None and constant.size == 1 and bool(constant[0] == 1)


def _size(value: ir.Value | None, axis: int) -> int:
    shape = value.shape if value is not None else None
    if shape is None or not -len(shape) <= axis < len(shape):
        return 0
    size = shape[axis]
    return size if isinstance(size, int) else 0


def _int(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return attribute.as_int() if attribute is not None and not attribute.is_ref() else default


def strings(value: ir.Value) -> tuple[str, ...]:
    """Strings that a label encoder or vectoriser downstream knows; a few ordinary ones when there is none."""
    for node, _ in value.uses():
        for name in (
            "keys_strings",
            "classlist_strings",
            "cats_strings",
            "string_vocabulary",
            "pool_strings",
        ):
            attribute = node.attributes.get(name)
            if attribute is not None and not attribute.is_ref():
                return tuple(dict.fromkeys(attribute.as_strings()))[:64]
    return ("a", "onnx", "Straße", "42", "")
