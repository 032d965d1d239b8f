"""Bounds the range of a value by the operators that make it."""

from __future__ import annotations

import math

import onnx_ir as ir

from onnxsmith.optimizer.rules._clamps import clamp
from onnxsmith.optimizer.rules._patterns import FLOATS

_NOT_NEGATIVE = ("Abs", "Exp", "HardSigmoid", "Sigmoid", "Softmax", "Softplus", "Sqrt")
_WITHIN_ONE = ("Cos", "Erf", "HardSigmoid", "Sigmoid", "Sin", "Softmax", "Softsign", "Tanh")
_KEEPING = ("Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
"""Operators whose result has elements of their first input only."""
_DEEPEST = 4
"""The most operators that are followed back. A choice that bounds the cost."""


def not_negative(value: ir.Value | None) -> bool:
    """Whether the last few operators prove that no number in a floating-point value is negative. The value may still
    have -0.0 and NaN."""
    if value is None or value.dtype not in FLOATS:
        return False
    for _ in range(_DEEPEST):
        node = value.producer() if value is not None else None
        if node is None or node.domain or value is not node.outputs[0]:
            return False
        if node.op_type in _NOT_NEGATIVE:
            return True
        bounds = clamp(node)
        if bounds is not None:
            return bounds.low >= 0
        if node.op_type not in _KEEPING:
            return False
        value = node.inputs[0]
    return False


def largest(value: ir.Value | None) -> float:
    """Returns a bound of the absolute values of a floating-point value, from the last few operators; infinity if there
    is none. NaN and infinities do not count."""
    for _ in range(_DEEPEST):
        node = value.producer() if value is not None else None
        if node is None or node.domain or value is not node.outputs[0]:
            return math.inf
        if node.op_type in _WITHIN_ONE:
            return 1.0
        source = node.inputs[0] if node.inputs else None
        if node.op_type == "Cast":
            dtype = source.dtype if source is not None else None
            return 2.0**dtype.bitwidth if dtype is not None and dtype.is_integer() else math.inf
        bounds = clamp(node)
        if bounds is not None:
            return max(abs(bounds.low), abs(bounds.high))
        if node.op_type not in _KEEPING:
            return math.inf
        value = source
    return math.inf
