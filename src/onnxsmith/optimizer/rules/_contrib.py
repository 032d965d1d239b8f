"""Helpers of rules that make operators of onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.optimizer.rules.base import NoMatch

DOMAIN = "com.microsoft"


def given(operands: Sequence[ir.Value | None]) -> list[ir.Value | None]:
    """Returns the operands without omitted ones at the end."""
    found = list(operands)
    while found and found[-1] is None:
        found.pop()
    return found


def without_kernel(value: ir.Value, operator: str) -> NoMatch | None:
    """Returns a refusal unless the value is known to be float, the only dtype for which onnxruntime has these CPU
    kernels."""
    if value.dtype is ir.DataType.FLOAT:
        return None
    return NoMatch(f"onnxruntime has {operator} on a CPU for float only", value)
