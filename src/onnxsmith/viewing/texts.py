"""Writes types for the page: `float32[batch, 3, 224]`."""

from __future__ import annotations

import onnx_ir as ir

_NAMES = {ir.DataType.FLOAT: "float32", ir.DataType.DOUBLE: "float64", ir.DataType.UNDEFINED: "?"}


def value_type(value: ir.Value) -> str:
    """Returns the type of a value; "" if nothing is known of it."""
    if value.type is None and value.const_value is not None:
        return tensor_type(value.const_value)
    return _type(value.type, value.shape)


def tensor_type(tensor: ir.TensorProtocol) -> str:
    """Returns the dtype and shape of a tensor."""
    return f"{dtype(tensor.dtype)}[{', '.join(map(str, tensor.shape))}]"


def dtype(one: ir.DataType | None) -> str:
    """Returns the name of a dtype as numpy has it."""
    return "?" if one is None else _NAMES.get(one) or one.name.lower()


def _type(kind: ir.TypeProtocol | None, shape: ir.ShapeProtocol | None) -> str:
    if kind is None:
        return "" if shape is None else f"?{_shape(shape)}"
    if type(kind) is ir.TensorType:  # nearly all are; the checks below are slow
        return f"{dtype(kind.dtype)}{_shape(shape)}"
    if isinstance(kind, ir.SequenceType):
        return f"sequence({_type(kind.elem_type, shape)})"
    if isinstance(kind, ir.OptionalType):
        return f"optional({_type(kind.elem_type, shape)})"
    text = f"{dtype(kind.dtype)}{_shape(shape)}"
    return f"sparse({text})" if isinstance(kind, ir.SparseTensorType) else text


def _shape(shape: ir.ShapeProtocol | None) -> str:
    if shape is None:
        return ""
    return f"[{', '.join(str(dim) if isinstance(dim, int) else str(dim.value or '?') for dim in shape)}]"
