"""Infers the types of one node's results by onnx's own inference, which also raises for contradictions of types and
shapes."""

from __future__ import annotations

import re

import onnx
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, known_integers
from onnxsmith.graph.structure import carried_fields

_MOST = 1024
"""Limits the elements of a constant that inference may read. A choice: shapes, scales and axes are shorter."""
_PREFIX = re.compile(r"^(\[\w+\]|\(op_type:[^)]*\):?|\s)+")


class RefusedError(Exception):
    """Raised if onnx's inference finds a contradiction; the text is its reason."""


def infer(node: ir.Node, version: int, ir_version: int | None = None) -> dict[ir.Value, onnx.TypeProto]:
    """Returns the types of the node's results; an empty dictionary if onnx has no schema, or if the type of an input is
    unknown.

    The node's operands and attributes must fit its schema. Otherwise onnx's functions may crash the process.

    Raises:
        RefusedError: with onnx's reason.
    """
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return {}
    names = {value: f"i{index}" for index, value in enumerate(dict.fromkeys(v for v in node.inputs if v is not None))}
    types = {name: type_ for value, name in names.items() if (type_ := _type(value)) is not None}
    if len(types) < len(names):
        return {}
    message = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    message.input.extend("" if value is None else names[value] for value in node.inputs)
    message.output.extend(f"o{index}" if value.name else "" for index, value in enumerate(node.outputs))
    message.attribute.extend(ir.to_proto(attribute) for attribute in node.attributes.values())
    data = {name: held for value, name in names.items() if (held := _data(value, name)) is not None}
    versions = dict(node.graph.opset_imports) if node.graph is not None else {}
    opsets = [onnx.helper.make_opsetid(domain, number) for domain, number in {**versions, node.domain: version}.items()]
    try:
        found = onnx.shape_inference.infer_node_outputs(
            schema, message, types, data, opset_imports=opsets, ir_version=ir_version or onnx.IR_VERSION
        )
    except Exception as error:  # several types of onnx, of pybind and of protobuf
        raise RefusedError(_PREFIX.sub("", str(error)).strip()) from error
    return {value: found[f"o{index}"] for index, value in enumerate(node.outputs) if f"o{index}" in found}


def adopt(value: ir.Value, found: onnx.TypeProto) -> None:
    """Gives a value the type that inference found, and the sizes that were unknown so far."""
    if found.WhichOneof("value") is None:
        return
    if not carried_fields.is_plain(found):
        carried_fields.declare(value, found)
        return
    type_ = ir.serde.deserialize_type_proto_for_type(found)
    if type_ is not None and type_.dtype != ir.DataType.UNDEFINED:
        value.type = type_
    shape = ir.serde.deserialize_type_proto_for_shape(found)
    if shape is None:
        return
    if value.shape is None:
        value.shape = shape
    elif len(value.shape) == len(shape):
        pairs = zip(value.shape, shape, strict=True)
        value.shape = ir.Shape(
            [new if isinstance(new, int) and not isinstance(old, int) else old for old, new in pairs]
        )


def _type(value: ir.Value) -> onnx.TypeProto | None:
    odd = carried_fields.odd_type(value)
    if odd is not None:
        return odd
    if value.type is None or value.type.dtype == ir.DataType.UNDEFINED:
        return None
    made: onnx.TypeProto = ir.serde.serialize_type(value.type)
    if value.shape is not None:
        ir.serde.serialize_shape_into(made, value.shape)
    return made


def _data(value: ir.Value, name: str) -> onnx.TensorProto | None:
    """Returns the elements of a value if they are known: a constant's, or integers that shape inference followed."""
    tensor = known_integers.constant_tensor(value)
    if tensor is None:
        known = facts.integers(value)
        numbers = [number for number in known or () if isinstance(number, int)]
        if known is None or value.dtype is None or len(numbers) < len(known):
            return None
        dims = [] if known_integers.rank(value) == 0 else [len(numbers)]
        return onnx.helper.make_tensor(name, int(value.dtype), dims, numbers)
    if tensor.size > _MOST:
        return None
    made: onnx.TensorProto = (
        ir.to_proto(ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=name))
        if tensor.dtype != ir.DataType.STRING
        else ir.to_proto(tensor)
    )
    made.name = name
    return made
