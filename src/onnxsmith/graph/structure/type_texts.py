"""Writes types of values as the texts that schemas use: `tensor(float)`, `seq(tensor(int64))`,
`map(string,tensor(float))`."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from onnxsmith.graph.structure import carried_fields


def type_text(value: ir.Value) -> str:
    """Returns the type of a value as a schema writes it; "" if it is unknown."""
    odd = carried_fields.odd_type(value)
    return _of_message(odd) if odd is not None else of_type(value.type)


def of_type(type_: ir.TypeProtocol | None) -> str:
    """Returns a type as a schema writes it; "" for None or an unknown dtype."""
    if type_ is None or type_.dtype in (None, ir.DataType.UNDEFINED):  # inference makes sequences of unknown dtype
        return ""
    inner = f"tensor({type_.dtype.name.lower()})"
    while isinstance(type_, ir.SequenceType | ir.OptionalType):
        around, type_ = ("seq" if isinstance(type_, ir.SequenceType) else "optional"), type_.elem_type
        inner = _around(inner, around)
    return f"sparse_{inner}" if isinstance(type_, ir.SparseTensorType) else inner


def of_dtype(dtype: ir.DataType) -> str:
    """Returns the tensor type of a dtype: `tensor(float)`."""
    return f"tensor({dtype.name.lower()})"


def _around(inner: str, kind: str) -> str:
    """Wraps the innermost type into another: `seq(tensor(x))` and `optional` give `seq(optional(tensor(x)))`."""
    start = inner.index("tensor(")
    return f"{inner[:start]}{kind}({inner[start:]})"


def _of_message(type_: onnx.TypeProto) -> str:
    name = onnx.TensorProto.DataType.Name
    match type_.WhichOneof("value"):
        case "tensor_type":
            return f"tensor({name(type_.tensor_type.elem_type).lower()})"
        case "sequence_type":
            return f"seq({_of_message(type_.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({_of_message(type_.optional_type.elem_type)})"
        case "map_type":
            inner = _of_message(type_.map_type.value_type).removeprefix("tensor(").removesuffix(")")
            return f"map({name(type_.map_type.key_type).lower()},tensor({inner}))"
        case "opaque_type":
            return f"opaque({type_.opaque_type.domain},{type_.opaque_type.name})"
    return ""
