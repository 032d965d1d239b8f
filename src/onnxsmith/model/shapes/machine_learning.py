"""Types and shapes of the operators of ai.onnx.ml that the engine has no rules for: classifiers, scalers, encoders."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.model.graph import schema
from onnxsmith.model.shapes import standard_inference

DOMAIN = "ai.onnx.ml"
_SAME_SHAPE = frozenset({"Imputer", "Normalizer", "Scaler"})
"""Operators whose result has the shape of the operand (ai.onnx.ml, "Maps each element" in their descriptions)."""


def infer(context: Any, node: ir.Node) -> None:
    """Sets what onnx's inference finds; else the only dtype that the operator can give, and the operand's shape."""
    version = context.get_opset_version(DOMAIN)
    try:
        for value, found in standard_inference.infer(node, version).items():
            standard_inference.adopt(value, found)
    except standard_inference.RefusedError:
        return
    known = schema.find(node.op_type, DOMAIN, version)
    for index, value in enumerate(node.outputs):
        formal = known.output(index) if known is not None else None
        if value.type is None and formal is not None and formal.types == {"tensor(float)"}:
            value.type = ir.TensorType(ir.DataType.FLOAT)
    operand = node.inputs[0] if node.inputs else None
    if node.op_type in _SAME_SHAPE and operand is not None and operand.shape is not None:
        value = node.outputs[0]
        value.shape = operand.shape if value.shape is None else value.shape


def versions() -> dict[str, tuple[int, ...]]:
    """The operators of the domain, with the versions at which they changed."""
    return {name: schema.versions(name, DOMAIN) for name in schema.every_name(DOMAIN)}
