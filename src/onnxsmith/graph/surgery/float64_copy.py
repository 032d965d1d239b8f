"""Makes a copy of a model that computes in float64 instead of float32: the same function with less rounding.

float16 and integers stay. No copy is made of a model that quantises, because float64 could move a number to another
quantisation step.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned

_FLOAT, _DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE
_MADE = {
    "Cast": "to", "RandomNormal": "dtype", "RandomUniform": "dtype", "RandomNormalLike": "dtype",
    "RandomUniformLike": "dtype", "EyeLike": "dtype", "Bernoulli": "dtype", "Multinomial": "dtype",
    "SequenceEmpty": "dtype", "HannWindow": "output_datatype", "HammingWindow": "output_datatype",
    "BlackmanWindow": "output_datatype", "MelWeightMatrix": "output_datatype",
}  # fmt: skip
"""Maps operators to their attribute that sets the dtype of the result."""
_FLOATS_BY_DEFAULT = ("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix", "SequenceEmpty")
_MOST = 2**26
"""Limits the bytes of float32 weights for which a copy is made. A choice: 64 MiB become 128 MiB."""


def widened(model: ir.Model) -> ir.Model | None:
    """Returns the copy; None for a model that quantises, uses other domains or has large weights. Its float32 inputs
    and outputs become float64."""
    if any("Quantize" in node.op_type or node.domain not in ("", "ai.onnx") for node in walk.all_nodes(model)):
        return None
    held = [value.const_value for value in walk.initializers(model) if value.const_value is not None]
    if sum(tensor.nbytes for tensor in held if tensor.dtype == _FLOAT) > _MOST:
        return None
    return retyped(model, _FLOAT, _DOUBLE)


def retyped(model: ir.Model, old: ir.DataType, new: ir.DataType) -> ir.Model:
    """Returns a copy in which the float dtype `new` replaces the float dtype `old`, also in inputs and outputs."""
    made = cloned(model)
    for graph in walk.graphs(made):
        for value in graph.initializers.values():
            if value.const_value is not None:
                value.const_value = _converted(value.const_value, old, new)
        for value in (*graph.inputs, *graph.initializers.values()):
            _retype(value, old, new)
    for node in walk.all_nodes(made):
        _change(node, old, new)
    return made


def _change(node: ir.Node, old: ir.DataType, new: ir.DataType) -> None:
    for output in node.outputs:
        _retype(output, old, new)
    kind = _MADE.get(node.op_type, "")
    said = node.attributes.get(kind)
    by_default = old == _FLOAT and said is None
    if (by_default and node.op_type in _FLOATS_BY_DEFAULT) or (
        said is not None and not said.is_ref() and said.as_int() == old.value
    ):
        node.attributes[kind] = ir.AttrInt64(kind, new.value)
    if node.op_type == "ConstantOfShape" and old == _FLOAT and "value" not in node.attributes:
        node.attributes["value"] = ir.AttrTensor("value", ir.tensor([0.0], dtype=new))
    for name, attribute in list(node.attributes.items()):
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.TENSOR:
            node.attributes[name] = ir.AttrTensor(name, _converted(attribute.as_tensor(), old, new))
        elif old == _FLOAT and node.op_type == "Constant" and name in ("value_float", "value_floats"):
            numbers = attribute.as_float() if name == "value_float" else list(attribute.as_floats())
            del node.attributes[name]
            node.attributes["value"] = ir.AttrTensor("value", ir.tensor(numbers, dtype=new))


def _converted(tensor: ir.TensorProtocol, old: ir.DataType, new: ir.DataType) -> ir.TensorProtocol:
    if tensor.dtype != old:
        return tensor
    with np.errstate(over="ignore"):  # values out of range become infinite
        return ir.tensor(tensor.numpy().astype(new.numpy()), name=tensor.name)


def _retype(value: ir.Value, old: ir.DataType, new: ir.DataType) -> None:
    if isinstance(value.type, ir.TensorType) and value.dtype == old:
        value.type = ir.TensorType(new)
