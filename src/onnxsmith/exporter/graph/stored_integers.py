"""Stores the weights of a quantised program as integers, in the form that runtimes fuse.

PyTorch keeps integers of 4 bits in tensors of 8 bits, and the weight of a linear layer transposed. ONNX Runtime fuses a
DequantizeLinear with a matrix product only if the product reads its result directly, without a Transpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.exporter.translations._quantizing import BITS
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery.node_insertion import Inserter, release

Array = npt.NDArray[Any]
_BLOCKS = 21
"""ONNX has integers of 4 bits from this opset on (ONNX operator schema)."""
_NARROW: dict[ir.DataType, Any] = {ir.DataType.INT8: ml_dtypes.int4, ir.DataType.UINT8: ml_dtypes.uint4}


def store(model: ir.Model) -> None:
    """Stores every quantised weight of the main graph as integers.

    1. A float weight that the graph quantises becomes integers.
    2. Integers of 4 bits get that dtype, from opset 21 on.
    3. A weight that is read transposed is stored transposed.
    4. A Gemm becomes MatMul and Sum; see `_divide`.
    5. Scales that are computed at run time become products: runtimes dequantise an axis by stored scales only.
    """
    names = Names(model)
    opset = model.graph.opset_imports.get("", 0)
    for node in [one for one in walk.nodes(model.graph) if one.op_type == "DequantizeLinear" and not one.domain]:
        width = node.metadata_props.pop(BITS, "")
        weight = _weight(node)
        if weight is None:
            _multiply(node, names)
            continue
        readers = _transposed(node)
        if readers:
            weight = weight.transposed()
        if width and opset >= _BLOCKS:
            weight = weight.narrow()
        _write(node, weight, names)
        for reader in readers:
            _read_directly(node, reader)
        for reader in [one for one, place in node.outputs[0].uses() if one.op_type == "Gemm" and place == 1]:
            _divide(reader, names)


@dataclass(frozen=True)
class _Weight:
    """Constant operands of a DequantizeLinear: the integers, their scale and zero point, its axis and block."""

    numbers: Array
    scale: Array
    zero: Array | None
    axis: int
    block: int

    def transposed(self) -> _Weight:
        scale, zero = self.scale, self.zero
        if self.block:
            scale, zero = scale.T, None if zero is None else zero.T
        return _Weight(self.numbers.T, scale, zero, 1 - self.axis, self.block)

    def narrow(self) -> _Weight:
        """Returns the weight in 4 bits if all its numbers fit, otherwise unchanged."""
        kind = _NARROW.get(ir.DataType.from_numpy(self.numbers.dtype))
        given = [array for array in (self.numbers, self.zero) if array is not None]
        least, most = (-8, 7) if self.numbers.dtype == np.int8 else (0, 15)
        if kind is None or any(array.size and (array.min() < least or array.max() > most) for array in given):
            return self
        zero = None if self.zero is None else self.zero.astype(kind)
        return _Weight(self.numbers.astype(kind), self.scale, zero, self.axis, self.block)


def _weight(node: ir.Node) -> _Weight | None:
    arrays = [_computed(value) for value in node.inputs]
    numbers, scale = arrays[0], arrays[1]
    if numbers is None or scale is None or (len(arrays) > 2 and node.inputs[2] is not None and arrays[2] is None):
        return None
    zero = arrays[2] if len(arrays) > 2 else None
    axis = node.attributes.get_int("axis", 1)
    block = node.attributes.get_int("block_size", 0)
    return _Weight(numbers, scale, zero, axis % numbers.ndim if scale.ndim else 0, block)


def _computed(value: ir.Value | None) -> Array | None:
    """Computes the values of a constant, or of a constant that is cast, moved or quantised before it is read."""
    if value is None:
        return None
    known = facts.constant(value)
    node = value.producer()
    if known is not None or node is None or node.domain:
        return known
    if node.op_type not in ("Cast", "Reshape", "Transpose", "Identity", "QuantizeLinear", "Clip", "Squeeze", "Expand"):
        return None
    given = [_computed(one) for one in node.inputs]
    if any(array is None for array, one in zip(given, node.inputs, strict=True) if one is not None):
        return None
    return _result(node, given)


def _result(node: ir.Node, given: list[Any]) -> Array | None:
    kind, first = node.op_type, given[0]
    if kind == "Cast":
        found: Array = first.astype(ir.DataType(node.attributes.get_int("to")).numpy())
        return found
    # In ONNX a 0 copies the input's size; in numpy it would be a size of 0.
    if kind == "Reshape" and not (given[1] == 0).any():
        return np.reshape(first, given[1])
    if kind == "Expand":
        return np.broadcast_to(first, np.broadcast_shapes(first.shape, tuple(given[1])))
    if kind == "Transpose":
        return np.transpose(first, node.attributes.get_ints("perm", tuple(reversed(range(first.ndim)))))
    if kind == "Clip" and len(given) == 3 and first.dtype.kind in "iu":
        held: Array = np.clip(first, given[1], given[2])
        return held
    if kind == "QuantizeLinear" and len(given) == 3 and "block_size" not in node.attributes:
        return _quantised(first, given[1], given[2], node.attributes.get_int("axis", 1))
    same: Array | None = first if kind == "Identity" else None
    return same


def _quantised(x: Array, scale: Array, zero: Array, axis: int) -> Array:
    """Quantises x as the ONNX specification says: `clip(round(x / scale) + zero)`."""
    if scale.ndim:
        form = [1] * x.ndim
        form[axis] = -1
        scale, zero = scale.reshape(form), zero.reshape(form)
    limits = np.iinfo(zero.dtype)
    whole = np.rint(x / scale).astype(np.float64) + zero.astype(np.float64)
    found: Array = np.clip(whole, limits.min, limits.max).astype(zero.dtype)
    return found


def _transposed(node: ir.Node) -> list[ir.Node]:
    """Returns the nodes that read the result transposed; empty unless all readers do and the result is a matrix."""
    value = node.outputs[0]
    shape = facts.constant(node.inputs[0])
    readers = [reader for reader, _ in value.uses()]
    if value.is_graph_output() or not readers or (shape is not None and shape.ndim != 2):
        return []
    return readers if all(_turns(reader, value) for reader in readers) else []


def _turns(reader: ir.Node, value: ir.Value) -> bool:
    if reader.domain:
        return False
    if reader.op_type == "Transpose":
        return list(reader.attributes.get_ints("perm", (1, 0))) == [1, 0]
    reads = [place for place, one in enumerate(reader.inputs) if one is value]
    return reader.op_type == "Gemm" and reads == [1] and reader.attributes.get_int("transB", 0) == 1


def _read_directly(node: ir.Node, reader: ir.Node) -> None:
    if reader.op_type == "Gemm":
        del reader.attributes["transB"]
        return
    result = reader.outputs[0]
    result.replace_all_uses_with(node.outputs[0], replace_graph_outputs=True)
    assert reader.graph is not None
    reader.graph.remove(reader, safe=True)


def _divide(gemm: ir.Node, names: Names) -> None:
    """Writes a Gemm as MatMul and Sum. ONNX Runtime (1.32) has no quantised kernel for a Gemm with a scale for each
    column: 450 µs instead of 22 µs for 8x512 by 512x512. It fuses MatMul and Add into a Gemm again, but not Sum."""
    plain = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
    if gemm.domain or any(attribute.value != plain.get(name) for name, attribute in gemm.attributes.items()):
        return
    write = Inserter(gemm, "", 0, names.free)
    x, weight, bias = [*gemm.inputs, None][:3]
    made = write.op("MatMul", x, weight)
    if bias is not None:
        # Sum, not Add: ONNX Runtime would fuse MatMul and Add into a Gemm again.
        made.type, made.shape = gemm.outputs[0].type, gemm.outputs[0].shape
        made = write.op("Sum", made, bias)
    for node in write.made:
        node.metadata_props.update(gemm.metadata_props)
    write.replace([made])


def _write(node: ir.Node, weight: _Weight, names: Names) -> None:
    for place, array in enumerate((weight.numbers, weight.scale, weight.zero)):
        old = node.inputs[place] if place < len(node.inputs) else None
        if array is None or old is None:
            continue
        known = facts.constant(old)
        if known is not None and known.dtype == array.dtype and known.shape == array.shape and known is array:
            continue
        made = _stored(node, old, array, names)
        source = _source(old).name or ""
        node.replace_input_with(place, made)
        _drop(old)
        _rename(made, source)
    node.outputs[0].shape = ir.Shape(weight.numbers.shape)
    if weight.scale.ndim:
        node.attributes["axis"] = ir.AttrInt64("axis", weight.axis)


def _stored(node: ir.Node, old: ir.Value, array: Array, names: Names) -> ir.Value:
    tensor = ir.tensor(np.ascontiguousarray(array).reshape(array.shape))
    name = names.free(_source(old).name or "")
    tensor.name = name
    made = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
    assert isinstance(node.graph, ir.Graph)
    node.graph.register_initializer(made)
    return made


def _source(value: ir.Value) -> ir.Value:
    """Returns the constant from which a value is computed."""
    while (node := value.producer()) is not None and node.inputs and node.inputs[0] is not None:
        value = node.inputs[0]
    return value


def _rename(made: ir.Value, name: str) -> None:
    """Gives the new constant the name of the old one, if the old one was removed."""
    graph = made.graph
    if isinstance(graph, ir.Graph) and name and name not in graph.initializers:
        del graph.initializers[made.name or ""]
        made.name = name
        assert made.const_value is not None
        made.const_value.name = name
        graph.register_initializer(made)


def _drop(value: ir.Value) -> None:
    """Removes a constant that no node reads any more, with the nodes that computed it."""
    node = value.producer()
    if value.uses() or value.is_graph_output():
        return
    if node is None or node.op_type == "Constant":
        release(value)
        return
    operands = [one for one in node.inputs if one is not None]
    assert node.graph is not None
    node.graph.remove(node, safe=True)
    for one in operands:
        _drop(one)


def _multiply(node: ir.Node, names: Names) -> None:
    """Replaces scales of an axis that are computed at run time: dequantises with a scale of 1, then multiplies by
    them."""
    q, scale = node.inputs[0], node.inputs[1]
    rank = None if q is None or q.shape is None else len(q.shape)
    is_axis = scale is not None and scale.shape is not None and len(scale.shape) == 1
    if not is_axis or rank is None or _computed(scale) is not None or "block_size" in node.attributes:
        return
    assert q is not None
    assert scale is not None
    assert q.dtype is not None
    write = Inserter(node, "rows", 0, names.free)
    form = [1] * rank
    form[node.attributes.get_int("axis", 1)] = -1
    shape = write.constant(form)
    whole = write.op("DequantizeLinear", q, write.constant(1.0, np.float32), write.constant(0, q.dtype.numpy()))
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        zero = write.op("Cast", write.op("Reshape", node.inputs[2], shape), to=int(ir.DataType.FLOAT))
        whole = write.op("Sub", whole, zero)
    write.replace([write.op("Mul", whole, write.op("Reshape", scale, shape))])
