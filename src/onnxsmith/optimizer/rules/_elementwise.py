"""Lists elementwise operators, and tells when an operand does not change the shape of a broadcast."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols

UNARY = (
    *("Abs", "Cast", "Ceil", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN"),
    *("LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus"),
    *("Softsign", "Sqrt", "Swish", "Tanh", "ThresholdedRelu"),
)
"""Operators with one input that treat every element alike, independent of its position."""

BROADCASTING = (
    *("Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less"),
    *("LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"),
)
"""Operators whose inputs are broadcast to one shape, from opset 8 on."""

Dims = Sequence[facts.Element | None]


def is_scalar(value: ir.Value | None, rank: int) -> bool:
    """Whether a value has one element, and no more axes than `rank`."""
    dims = facts.dims(value)
    return dims is not None and len(dims) <= rank and all(dim == 1 for dim in dims)


def is_absorbed(added: Dims, beside: Sequence[Dims]) -> bool:
    """Whether a broadcast of `beside` alone has the same shape as a broadcast of `beside` and `added`, assuming that
    the latter succeeds."""
    if len(added) > max(map(len, beside), default=0):
        return False
    for place, dim in enumerate(reversed(added), 1):
        there = [other[-place] for other in beside if place <= len(other)]
        if dim != 1 and not any(symbols.covers(other, dim) for other in there):
            return False
    return True
