"""Makes a float64 copy of a model for the reference evaluator: its results without the rounding of narrow floats."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned

_NARROW = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_DTYPE_ATTRIBUTES = {"to", "dtype", "stash_type", "softmax_precision", "output_dtype"}
"""Lists attributes that hold a dtype as a number."""


def doubled(model: ir.Model) -> ir.Model:
    """Returns a copy of `model` in which every float32, float16 and bfloat16 tensor is float64: inputs, weights, casts.

    The copy is for the reference evaluator, whose kernels take any dtype. Other runtimes may refuse it, because ONNX
    allows no float64 for some operators. Quantised values keep their dtypes.
    """
    made = cloned(model)
    for graph in walk.graphs(made):
        for value in _values(graph):
            if value.dtype in _NARROW:
                value.type = _wide_type(value.type)  # a new object: clones share their types
        for value in graph.initializers.values():
            if value.const_value is not None and value.const_value.dtype in _NARROW:
                value.const_value = _wide(value.const_value)
    for node in walk.all_nodes(made):
        for name, attribute in list(node.attributes.items()):
            if attribute.is_ref():
                continue
            if attribute.type == ir.AttributeType.TENSOR and attribute.as_tensor().dtype in _NARROW:
                node.attributes[name] = ir.AttrTensor(name, _wide(attribute.as_tensor()))
            elif name in _DTYPE_ATTRIBUTES and attribute.type == ir.AttributeType.INT:
                if attribute.as_int() in {dtype.value for dtype in _NARROW}:
                    node.attributes[name] = ir.AttrInt64(name, ir.DataType.DOUBLE.value)
            elif node.op_type == "Constant" and name in ("value_float", "value_floats"):
                del node.attributes[name]
                held = attribute.as_float() if name == "value_float" else attribute.as_floats()
                node.attributes["value"] = ir.AttrTensor("value", ir.tensor(held, dtype=ir.DataType.DOUBLE))
    return made


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs
        for inner in walk.subgraphs(node):
            yield from inner.inputs


def _wide(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.Tensor(tensor.numpy().astype("float64"), name=tensor.name)


def _wide_type(type_: ir.TypeProtocol | None) -> ir.TypeProtocol:
    if isinstance(type_, ir.SequenceType | ir.OptionalType):
        return type(type_)(_wide_type(type_.elem_type))
    kind = type(type_) if isinstance(type_, ir.SparseTensorType) else ir.TensorType
    return kind(ir.DataType.DOUBLE)
