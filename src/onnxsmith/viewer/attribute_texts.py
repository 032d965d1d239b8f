"""Writes attributes for the page: a number that stands for a dtype is written with its name."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.reading.exact_text import attribute_text

_DTYPES = {"to", "dtype", "output_dtype", "output_datatype", "stash_type", "precision", "softmax_precision"}
"""Attributes that are numbers of `TensorProto.DataType` in the ONNX specification."""


def shown(attribute: ir.Attr) -> str:
    """Returns the value of an attribute as text: `FLOAT (1)` for the `to` of a Cast."""
    text = attribute_text(attribute)
    if attribute.name not in _DTYPES or attribute.is_ref() or attribute.type != ir.AttributeType.INT:
        return text
    try:
        return f"{ir.DataType(attribute.as_int()).name} ({text})"
    except ValueError:  # a number that stands for no dtype
        return text
