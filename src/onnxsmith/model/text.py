"""A model as ONNX text, the notation of the specification: to read, and to write tests and rules in."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.load import from_proto, parse_text


def to_text(model: ir.Model, *, weights: bool = False) -> str:
    """The model as ONNX text; without `weights`, initializers are left out, because one can be gigabytes long."""
    return str(ir.to_onnx_text(model, exclude_initializers=not weights))


def from_text(text: str) -> ir.Model:
    """The model that ONNX text describes.

    Raises:
        OnnxsmithError: `model/text-syntax` when the text does not parse, or another `model/…` problem of its graph.
    """
    where = "the given text"
    return from_proto(parse_text(text, where=where), where=where)
