"""Stores weights as the floats that a DequantizeLinear would compute from integers."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.base.words import several
from onnxsmith.deployment.checking.fixes._shaped_copy import Places, constant
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.surgery.node_insertion import release

_MOST = 2**28
"""Largest size in bytes of the floats that a try may add. A choice: int4 weights become eight times as large in
float32, and a file of a gigabyte does not suit a small device."""
_USUAL = (ir.DataType.INT8, ir.DataType.UINT8)
"""Dtypes of weights that nearly every target dequantises."""


class FoldDequantized(Fix):
    """A target may lack the dtype of a quantised weight (int4) or bias (int32). The floats are computed as the
    specification says: (x - zero_point) * scale, in float32, then cast to the dtype of the scale.

    Refused:
    1. The weight, its scale or its zero point is computed.
    2. The floats of all weights would take more than 256 MB.
    3. The dtype of the result is an attribute of the node.
    """

    rank = 16

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        if "DequantizeLinear" not in refused:
            return
        before = -1
        # First without int8 and uint8, which nearly every target takes: their floats are four times as large.
        for usual, words in ((False, "of other dtypes than int8 and uint8 "), (True, "")):
            places = Places.of(model)
            held = 0
            for node in places.nodes("DequantizeLinear"):
                held += _folded(places, node, _MOST - held, usual=usual)
            if places.changed > max(before, 0):
                yield f"{several(places.changed, 'quantised constant')} {words}stored as floats", places.model
            before = places.changed


def _folded(places: Places, node: ir.Node, most: int, *, usual: bool) -> int:
    """Replaces the node by a constant of at most `most` bytes, if possible; returns the bytes of the constant."""
    source, scale = node.inputs[0], constant(node.inputs[1])
    given = node.inputs[2] if len(node.inputs) > 2 else None
    zero = constant(given)
    tensor = ir.convenience.get_const_tensor(source) if source is not None else None
    if tensor is None or scale is None or (given is not None and zero is None) or node.outputs[0].is_graph_output():
        return 0
    if (tensor.dtype in _USUAL and not usual) or "output_dtype" in node.attributes:
        return 0
    size = int(np.prod(tensor.shape.numpy(), dtype=np.int64)) * scale.dtype.itemsize
    if size > most:
        return 0
    write = places.inserter(node)
    made = _floats(tensor.numpy(), scale, zero, node)
    read = [value for value in node.inputs if value is not None]
    places.replace(node, write, write.constant(made, scale.dtype))
    for value in read:  # a target may refuse the dtype even of an unused weight
        if value.is_initializer() and not value.uses() and not value.is_graph_input():
            release(value)
    return size


def _floats(array: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, node: ir.Node) -> np.ndarray:
    axis, block = node.attributes.get_int("axis", 1), node.attributes.get_int("block_size", 0)

    def spread(one: np.ndarray) -> np.ndarray:
        """Repeats a scale or zero point over the elements that it belongs to."""
        if block:
            many = np.repeat(one, block, axis=axis)
            return many[tuple(slice(0, size) for size in array.shape)]
        if one.size == 1:
            return one.reshape(())
        return one.reshape([-1 if index == axis % array.ndim else 1 for index in range(array.ndim)])

    plain = array.astype(np.float32) if array.dtype.kind == "f" else array.astype(np.int64)
    if zero is not None:
        plain = plain - spread(zero).astype(plain.dtype)
    floats: np.ndarray = (plain.astype(np.float32) * spread(scale).astype(np.float32)).astype(scale.dtype)
    return floats
