"""Counts the parameters and the bytes of weights, by the group of the node that reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.reading.weights import Held, held
from onnxsmith.graph.structure import walk
from onnxsmith.viewer.inspection.costs.cost_groups import Path
from onnxsmith.viewer.inspection.tables import SMALLEST

_BUFFERS = {
    "BatchNormalization": (3, 4),  # running mean and variance
    "QuantizeLinear": (1, 2),
    "DequantizeLinear": (1, 2),  # scale and zero point
    "QLinearConv": (1, 2, 4, 5, 6, 7),
    "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "Clip": (1, 2),
    "Pad": (1, 2),
    "Resize": (1, 2),
    "Upsample": (1,),
}
"""Maps operators to their stored operands that are no parameters."""
_INTEGER_BIAS = {"DequantizeLinear": 0, "QLinearConv": 8}
"""Maps operators to the operand whose int32 values are parameters."""


@dataclass
class Stored:
    """Counts the elements of parameters, and the bytes of all stored tensors."""

    parameters: int = 0
    bytes: int = 0


def stored(model: ir.Model, path_of: Callable[[ir.Node], Path]) -> dict[Path, Stored]:
    """Returns the parameters and bytes by group; () is the group for tensors that no node reads.

    Each tensor counts once, for its first reader in the order of the file. Parameters are float and complex tensors,
    and integers of at most 8 bits, which are quantised weights. Parameters are initializers, or constants of 16
    elements or more. Running statistics, scales, zero points and limits are no parameters.
    """
    tensors = {item.value: item for item in held(model) if not item.constant or _size(item) >= SMALLEST}
    found: dict[Path, Stored] = {}
    seen: set[int] = set()

    def note(item: Held, path: Path, *, parameter: bool) -> None:
        key = id(item.tensor) if item.tensor is not None else id(item.value)
        if key in seen:
            return
        seen.add(key)
        group = found.setdefault(path, Stored())
        group.bytes += 0 if item.tensor is None else item.tensor.nbytes
        group.parameters += _size(item) if parameter else 0

    for node in walk.all_nodes(model):
        for index, value in enumerate(node.inputs):
            item = None if value is None else tensors.get(value)
            if item is not None:
                note(item, path_of(node), parameter=_is_parameter(item, node, index))
    for item in tensors.values():
        note(item, (), parameter=_is_number(item))
    return found


def _is_parameter(item: Held, node: ir.Node, index: int) -> bool:
    if index in _BUFFERS.get(node.op_type, ()):
        return False
    return _is_number(item) or (_INTEGER_BIAS.get(node.op_type) == index and _dtype(item) == ir.DataType.INT32)


def _is_number(item: Held) -> bool:
    dtype = _dtype(item)
    if dtype is None or dtype in (ir.DataType.BOOL, ir.DataType.STRING, ir.DataType.UNDEFINED):
        return False
    return not dtype.is_integer() or dtype.bitwidth <= 8


def _dtype(item: Held) -> ir.DataType | None:
    return item.value.dtype if item.tensor is None else item.tensor.dtype


def _size(item: Held) -> int:
    if item.tensor is not None:
        return item.tensor.size
    dims: Iterable[object] = item.value.shape or ()
    size = 1
    for dim in dims:
        size *= dim if isinstance(dim, int) else 0
    return size
