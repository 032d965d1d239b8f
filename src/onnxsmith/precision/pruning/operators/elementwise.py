"""Operators that compute each element from the elements at the same place, with broadcasting."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators._channel_origins import origin
from onnxsmith.precision.pruning.operators.base import Operator

UNARY = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "Ceil", "Celu", "Clip", "Cos",
    "Cosh", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN",
    "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign",
    "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
)  # fmt: skip
MANY = (
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "CastLike", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip


class Elementwise(Operator):
    """Channels of all operands and of the result go together. A stored operand loses its part; a computed operand whose
    channels are fixed keeps those of the others."""

    ops = UNARY + MANY

    def link(self, node: ir.Node, links: Links) -> None:
        operands = [value for value in node.inputs if value is not None]
        if node.op_type == "CastLike":
            operands = operands[:1]
        if any(rank(value) is None for value in operands) or len(node.outputs) > 1 + (node.op_type == "Dropout"):
            return
        for y in node.outputs:
            for axis in range(rank(y) or 0):
                _along(links, operands, y, axis)


def _along(links: Links, operands: list[ir.Value], y: ir.Value, axis: int) -> None:
    back = (rank(y) or 0) - axis
    sides = [(value, (rank(value) or 0) - back) for value in operands if (rank(value) or 0) >= back]
    size = static(y, axis)
    living = [one for one in sides if links.is_live(*one) and static(*one) == size]
    for value, at in sides:
        if links.is_live(value, at) and static(value, at) != size:
            links.pin(value, at, "it is one channel that is combined with several")
    if size is None:
        return
    for value, at in living:
        links.tie(value, at, y, axis)
    for value, at in sides:
        if not living or links.is_live(value, at) or static(value, at) == 1:
            continue
        if is_weight(value):
            links.tie(y, axis, value, at)
        else:
            links.pin(y, axis, f"it is combined with {value.name!r}, {origin(value)}, whose channels stay")
