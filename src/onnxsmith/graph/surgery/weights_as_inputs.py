"""Turns a model's weights into inputs, so that one session can run the model with different weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import onnx
import onnx_ir as ir
from onnx import helper

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import Port, Signature, signature

_FLOATS = {
    ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16,
}  # fmt: skip
_LEVELS = {ir.DataType.INT8, ir.DataType.UINT8}
_QUANTISERS = {"QuantizeLinear", "DequantizeLinear"}
_PRODUCTS_OF_LEVELS = {"ConvInteger", "MatMulInteger", "QGemm", "QLinearConv", "QLinearMatMul", "DequantizeLinear"}
_NOT_AS_INPUTS = {
    "Resize", "Upsample", "Range", "Clip", "Pow", "Pad", "OneHot", "ConstantOfShape", "TopK", "NonMaxSuppression",
    "RoiAlign", "Loop", "Where",
}  # fmt: skip
"""Lists operators whose float operands are sizes, bounds, exponents or fill values: a change by an ulp can change their
meaning."""
_MOVING = {"Transpose", "Reshape", "Identity", "Cast", "Squeeze", "Unsqueeze", "Flatten", "Gather", "Expand"}
"""Lists operators that only move elements; the node that computes with the weight comes after them."""
_PLACING = {"Concat", "ScatterElements", "ScatterND"}
"""Lists operators that put the elements of a weight beside elements of other tensors."""
_INTEGERS = 4
"""Is the accuracy level of MatMulNBits that computes with integers of 8 bits. onnxruntime's kernel then reads the
scales when the model is loaded, and computes without them if they are not constant (1.31, 1.32)."""


@dataclass(frozen=True)
class Weight:
    """One weight: its name, its stored values, and the number of `terms` that its reader sums. A weight that
    `is_placed` is only put beside other elements, as a label or a fill value: no node computes with it."""

    name: str
    tensor: ir.TensorProtocol
    terms: int
    is_placed: bool = False

    @property
    def is_levels(self) -> bool:
        """Whether the weight consists of quantised integers."""
        return self.tensor.dtype in _LEVELS


def adjustable(model: ir.Model) -> tuple[ir.Model, tuple[Weight, ...]]:
    """Returns a copy of `model` in which every weight of the main graph is an input with a default, and these weights
    in the order of the nodes that read them. Weights inside branches, bodies and functions stay as they are.

    A weight is a tensor of floats, or of quantised integers, in an initializer or a Constant node. Sizes, bounds,
    exponents and single numbers are not weights, except the scales of quantisers.
    """
    made = cloned(model)
    made.ir_version = max(made.ir_version or 0, walk.FIRST_WITH_CONSTANTS)
    _lift_constants(made)
    found: list[Weight] = []
    for value, weight in list(_weights(made.graph)):
        if value.type is None:
            value.type = ir.TensorType(weight.tensor.dtype)
        value.shape = _shape(weight.tensor)
        made.graph.inputs.append(value)
        found.append(weight)
    return made, tuple(found)


def additions(model: ir.Model) -> tuple[bytes, Signature, tuple[Weight, ...]] | None:
    """Returns the same change as `adjustable`, for a file: a message that extends the file's model if it follows the
    file's bytes (protocol buffers join the fields of both), the signature of the extended model, and the weights. None
    if a Constant node holds a weight, because such a node would have to be replaced."""
    if any(_holds_weight(node) for node in model.graph):
        return None
    found = [weight for _, weight in _weights(model.graph)]
    ports = [
        helper.make_tensor_value_info(one.name, int(one.tensor.dtype), list(_shape(one.tensor).numpy()))
        for one in found
    ]
    version = max(model.ir_version or 0, walk.FIRST_WITH_CONSTANTS)
    message = onnx.ModelProto(ir_version=version, graph=onnx.GraphProto(input=ports))
    own = signature(model)
    more = (Port(one.name, one.tensor.dtype.name.lower(), _shape(one.tensor).numpy(), default=True) for one in found)
    return message.SerializeToString(), replace(own, inputs=(*own.inputs, *more)), tuple(found)


def _holds_weight(node: ir.Node) -> bool:
    """Whether a node may be a Constant with a weight."""
    if node.op_type != "Constant" or node.domain or "value" not in node.attributes:
        return False
    attribute = node.attributes["value"]
    if attribute.is_ref() or attribute.type != ir.AttributeType.TENSOR:
        return False
    tensor = attribute.as_tensor()
    quantises = any(reader.op_type in _QUANTISERS for reader in node.outputs[0].consumers())
    return tensor.dtype in _FLOATS | _LEVELS and (tensor.size > 1 or quantises)


def _weights(graph: ir.Graph) -> Iterator[tuple[ir.Value, Weight]]:
    """Yields the initializers of a main graph that are weights, in the order of the nodes that read them."""
    taken = {value.name for value in graph.inputs}
    for node in graph:
        for index, value in enumerate(node.inputs):
            tensor = value.const_value if value is not None and value.is_initializer() else None
            if value is None or tensor is None or value.name in taken or not value.name:
                continue
            if value.graph is graph and _computes(node, index, tensor):
                taken.add(value.name)
                is_placed = all(reader.op_type in _PLACING for reader in value.consumers())
                yield value, Weight(value.name, tensor, _terms(node, tensor), is_placed)


def single_numbers(model: ir.Model) -> dict[str, ir.TensorProtocol]:
    """Returns the one-element constants of the main graph by name: floats, and the zero points of quantisers."""
    found: dict[str, ir.TensorProtocol] = {}
    for node in model.graph:
        for value in node.inputs:
            tensor = const_tensor(value) if value is not None else None
            if value is None or tensor is None or tensor.size != 1 or not value.name:
                continue
            quantises = node.op_type in _QUANTISERS or node.op_type in _PRODUCTS_OF_LEVELS
            if tensor.dtype in _FLOATS or (tensor.dtype in _LEVELS and quantises):
                found[value.name] = tensor
    return found


def with_numbers(model: ir.Model, values: Mapping[str, ir.TensorProtocol]) -> ir.Model:
    """Returns a copy of `model` in which the initializers and Constants with these names have these values."""
    made = cloned(model)
    held = {value.name: value for node in made.graph for value in node.inputs if value is not None}
    for name, tensor in values.items():
        array, old = tensor.numpy(), held[name]
        fresh = f"{name}.other"
        new = ir.Value(name=fresh, type=ir.TensorType(tensor.dtype), shape=_shape(tensor))
        new.const_value = ir.tensor(array, dtype=tensor.dtype, name=fresh)
        old.replace_all_uses_with(new)
        made.graph.register_initializer(new)
    return made


def _lift_constants(model: ir.Model) -> None:
    """Turns Constant nodes of the main graph into initializers."""
    for node in list(model.graph):
        if node.op_type != "Constant" or node.domain or "value" not in node.attributes:
            continue
        attribute = node.attributes["value"]
        if attribute.is_ref() or attribute.type != ir.AttributeType.TENSOR:
            continue
        value = node.outputs[0]
        if value.is_graph_output() or not value.name:
            continue
        new = ir.Value(
            name=value.name,
            type=ir.TensorType(attribute.as_tensor().dtype),
            shape=_shape(attribute.as_tensor()),
            const_value=attribute.as_tensor(),
        )
        value.replace_all_uses_with(new)
        value.name = f"{value.name}.constant"
        model.graph.remove(node, safe=True)
        model.graph.register_initializer(new)


def _shape(tensor: ir.TensorProtocol) -> ir.Shape:
    return ir.Shape([size for size in tensor.shape if isinstance(size, int)])


def _computes(node: ir.Node, index: int, tensor: ir.TensorProtocol) -> bool:
    """Whether operand `index` of the node is a weight. Operands 0, 1 and 3 of quantised products are data and weights;
    the other operands are scales and zero points."""
    if node.domain == "" and node.op_type in _NOT_AS_INPUTS:
        return False
    if node.op_type == "MatMulNBits" and node.attributes.get_int("accuracy_level", 0) == _INTEGERS:
        return False
    if tensor.dtype in _LEVELS:
        return node.op_type in _PRODUCTS_OF_LEVELS and tensor.size > 1 and index in (0, 1, 3)
    if tensor.dtype not in _FLOATS or tensor.size == 0:
        return False
    return tensor.size > 1 or (node.op_type in _QUANTISERS and index == 1)


def _terms(node: ir.Node, tensor: ir.TensorProtocol) -> int:
    """Returns how many products the weight's reader sums for one result; 1 if that does not follow from the weight's
    shape."""
    sizes = [size for size in tensor.shape if isinstance(size, int)]
    for reader in _readers(node):
        if reader.op_type in ("MatMul", "Gemm") and len(sizes) >= 2:
            return max(sizes[-2:])
        if reader.op_type == "Conv" and len(sizes) > 2:
            return math.prod(sizes[1:])
        if reader.op_type == "ConvTranspose" and len(sizes) > 2:
            return math.prod([sizes[0], *sizes[2:]])
        if reader.op_type in ("LSTM", "GRU", "RNN") and len(sizes) == 3:
            return sizes[-1]
    return 1


def _readers(node: ir.Node) -> Iterator[ir.Node]:
    """Yields the node, or the readers of its output if the node only moves elements."""
    if node.op_type not in _MOVING:
        yield node
        return
    for user, _ in node.outputs[0].uses():
        if user.op_type not in _MOVING:
            yield user
