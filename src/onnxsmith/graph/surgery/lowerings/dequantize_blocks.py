"""Lowers DequantizeLinear in blocks, or of 4-bit integers."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import Lowering, operand
from onnxsmith.graph.surgery.node_insertion import Inserter

_NARROW = {ir.DataType.INT4: np.int8, ir.DataType.UINT4: np.uint8}


class DequantizeBlocks(Lowering):
    """Makes each block a row with a scale of its own, and restores the shape of the result. Widens 4-bit constants to 8
    bits."""

    operators: ClassVar[dict[str, int]] = {"DequantizeLinear": 21}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        q, scale, zero = operand(node, 0), operand(node, 1), operand(node, 2)
        block = node.attributes.get_int("block_size", 0)
        if q is None or scale is None:
            return ""
        narrow = [(place, value) for place, value in ((0, q), (2, zero)) if value is not None and _is_narrow(value)]
        if any(not facts.is_constant(value) for _, value in narrow):
            return "its integers have 4 bits and are no constant"
        shape = facts.dims(q)
        if block and (shape is None or not all(isinstance(size, int) for size in shape)):
            return "it dequantises in blocks, and the shape of its input is unknown"
        for place, value in narrow:
            node.replace_input_with(place, _widened(value, write))
        if block:
            sizes = [size for size in shape or () if isinstance(size, int)]
            _by_rows(node, sizes, block, write)
        return ""


def _by_rows(node: ir.Node, sizes: list[int], block: int, write: Inserter) -> None:
    axis = node.attributes.get_int("axis", 1) % len(sizes)
    order = [one for one in range(len(sizes)) if one != axis] + [axis]
    moved = [sizes[one] for one in order]

    def last(value: ir.Value, form: list[int]) -> ir.Value:
        if order != sorted(order):
            value = write.op("Transpose", value, perm=order)
        return write.op("Reshape", value, write.constant(form))

    q, scale, zero = node.inputs[0], node.inputs[1], operand(node, 2)
    assert q is not None
    assert scale is not None
    given = [last(q, [math.prod(sizes) // block, block]), last(scale, [-1])]
    if zero is not None:
        given.append(last(zero, [-1]))
    result = write.op("Reshape", write.op("DequantizeLinear", *given, axis=0), write.constant(moved))
    if order != sorted(order):
        result = write.op("Transpose", result, perm=[order.index(one) for one in range(len(order))])
    write.replace([result])


def _is_narrow(value: ir.Value) -> bool:
    return value.dtype in _NARROW


def _widened(value: ir.Value, write: Inserter) -> ir.Value:
    numbers = facts.constant(value)
    assert numbers is not None
    assert value.dtype is not None
    return write.constant(numbers.astype(_NARROW[value.dtype]), _NARROW[value.dtype])
