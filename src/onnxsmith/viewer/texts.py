"""Writes types for the page: `float32[batch, 3, 224]`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.reading import exact_text

_PAGE = exact_text.Style({ir.DataType.FLOAT: "float32", ir.DataType.DOUBLE: "float64"}, ", ")
"""Names dtypes as numpy does."""


def value_type(value: ir.Value) -> str:
    """Returns the type of a value; "" if the type is unknown."""
    return exact_text.value_type(value, _PAGE)


def tensor_type(tensor: ir.TensorProtocol) -> str:
    """Returns the dtype and shape of a tensor."""
    return exact_text.tensor_type(tensor, _PAGE)
