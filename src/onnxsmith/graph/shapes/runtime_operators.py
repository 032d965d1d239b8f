"""Infers shapes of operators of com.microsoft that are a standard operator in another form, for which the engine has no
rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from onnxsmith.base.seams.shape_engine import Rules

DOMAIN = "com.microsoft"
STANDARD = {
    "DynamicQuantizeLSTM": "LSTM",
    "DynamicQuantizeMatMul": "MatMul",
    "FusedConv": "Conv",
    "FusedGemm": "Gemm",
    "GridSample": "GridSample",
    "MatMulIntegerToFloat": "MatMul",
    "Trilu": "Trilu",
}
"""Maps operators to the standard operators of the same operands, in the same places, and the same shapes (onnxruntime,
docs/ContribOperators.md)."""
_TO_FLOAT = {"MatMulIntegerToFloat"}
"""Lists operators whose result is float, unlike their first operand."""


class _Standard:
    """Presents a node as its standard operator."""

    def __init__(self, node: ir.Node, op_type: str, outputs: Sequence[ir.Value]) -> None:
        self._node, self.op_type, self.domain, self.outputs = node, op_type, "", tuple(outputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)


def kind(node: ir.Node) -> str:
    """Returns the standard operator that a node is; "" for an operator of another domain that is none."""
    if node.domain == DOMAIN:
        return STANDARD.get(node.op_type, "")
    return "" if node.domain else node.op_type


def register(registry: Rules, opset: int) -> None:
    """Adds a rule for each of these operators that has none. `opset` chooses the standard operator's rule."""
    for op in STANDARD:
        rule = registry.get("", STANDARD[op], opset)
        if rule is not None and registry.get(DOMAIN, op, 1) is None:
            registry.register(DOMAIN, op, 1)(_as_standard(op, rule))


def _as_standard(op: str, rule: Callable[[Any, Any], None]) -> Callable[[Any, ir.Node], None]:
    def infer(context: Any, node: ir.Node) -> None:
        if op not in _TO_FLOAT:
            rule(context, _Standard(node, STANDARD[op], node.outputs))
            return
        found = ir.Value()
        rule(context, _Standard(node, STANDARD[op], [found]))
        context.set_shape_and_dtype(node.outputs[0], found.shape, ir.DataType.FLOAT)

    return infer
