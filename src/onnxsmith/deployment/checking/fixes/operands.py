"""Defines fixes that change the operands of a node."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import several
from onnxsmith.deployment.checking.fixes.base import Fix, Places, constant
from onnxsmith.graph.surgery.node_insertion import release


class ScalarAxis(Fix):
    """Makes the axis of a CumSum a scalar.

    By the specification, the axis of a CumSum is a scalar. Runtimes also take a tensor of one element, but compilers
    may not.

    Refused:
    1. The axis is computed, or a scalar already.
    """

    rank = 8

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        for op in ("CumSum", "CumProd"):
            for node in places.nodes(op):
                axis = constant(node.inputs[1])
                if axis is None or axis.ndim != 1 or axis.size != 1:
                    continue
                node.replace_input_with(1, places.inserter(node).constant(axis[0], axis.dtype))
                places.changed += 1
        if places.changed:
            yield "the axis of CumSum turned into a scalar", places.model


class SqueezeAxes(Fix):
    """Names the axes of a Squeeze that removes all axes of size 1.

    Without axes the rank of the result depends on the sizes, which a compiler cannot know. The rewrite needs to know
    for every axis whether its size is 1.

    Refused:
    1. A size is symbolic: Squeeze removes its axis only at size 1.
    """

    rank = 12

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        for node in places.nodes("Squeeze"):
            given = len(node.inputs) > 1 and node.inputs[1] is not None
            shape = node.inputs[0].shape if node.inputs[0] is not None else None
            if given or "axes" in node.attributes or shape is None or not shape.is_static():
                continue
            axes = [axis for axis, size in enumerate(shape) if size == 1]
            if places.opset < 13:
                node.attributes["axes"] = ir.AttrInt64s("axes", axes)
            else:
                node.resize_inputs(2)
                node.replace_input_with(1, places.inserter(node).constant(axes))
            places.changed += 1
        if places.changed:
            yield "Squeeze names its axes", places.model


_MOST = 2**28
"""Limits the bytes of the floats that a try may add. A choice: int4 weights become eight times as large in float32, and
a file of a gigabyte does not suit a small device."""
_USUAL = (ir.DataType.INT8, ir.DataType.UINT8)
"""Lists the dtypes of weights that nearly every target dequantises."""


class FoldDequantized(Fix):
    """Stores weights as the floats that a DequantizeLinear would compute from integers.

    A target may lack the dtype of a quantised weight (int4) or bias (int32). The floats are computed as the
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
    tensor = const_tensor(source) if source is not None else None
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
        """Repeats a scale or zero point over the elements to which it belongs."""
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
