"""Follows channels through operators that keep each channel in its place."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.known_integers import Elements, elements
from onnxsmith.precision.pruning.channel_links import Cuts, Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators.base import Operator, can_resize, operand, origin

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
    """Operators that compute each element from the elements at the same place, with broadcasting.

    Channels of all operands and of the result are removed together. A stored operand is cut. A computed operand whose
    channels are fixed also fixes the channels of the other operands.
    """

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
            links.pin(value, at, "this single channel is combined with several channels")
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
            links.pin(y, axis, f"the channels are combined with {value.name!r}, {origin(value)}, whose channels stay")


_POOLS = ("AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool")
_SIZES = 3
"""The index of the sizes among the inputs of Resize."""


class Spatial(Operator):
    """Operators that compute each channel by itself, from neighbouring positions: pools, Resize, Pad.

    Channels pass along the axes of a pool before the spatial axes, and along axes whose size Resize and Pad keep.
    """

    ops = (*_POOLS, "Pad", "Resize", "Upsample")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        for axis in links.live_axes(x):
            if node.op_type in _POOLS:
                passes = axis < 2 and len(node.outputs) == 1
            elif node.op_type == "Pad":
                passes = _unpadded(node, axis)
            else:
                passes = static(y, axis) == static(x, axis) and _sizes_known(node)
            if passes:
                links.tie(x, axis, y, axis)
            else:
                links.pin(x, axis, f"{links.label} mixes several channels, or changes their number")

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        if node.op_type != "Resize" or not _has_sizes(node):
            return
        cut = cuts.axes(node.inputs[0])
        cuts.resize(node, _SIZES, {at: len(cut[axis]) for at, axis in enumerate(_axes(node)) if axis in cut})


def _axes(node: ir.Node) -> list[int]:
    count = rank(node.inputs[0]) or 0
    if "axes" in node.attributes:
        return [axis % count for axis in node.attributes["axes"].as_ints()]
    return list(range(count))


def _sizes_known(node: ir.Node) -> bool:
    """Whether the sizes can be changed."""
    return node.op_type != "Resize" or not _has_sizes(node) or can_resize(node, _SIZES)


def _has_sizes(node: ir.Node) -> bool:
    array = facts.constant(operand(node, _SIZES))
    return operand(node, _SIZES) is not None and (array is None or array.size > 0)


def _unpadded(node: ir.Node, axis: int) -> bool:
    count = rank(node.inputs[0]) or 0
    if "pads" in node.attributes:
        pads: Elements = [int(one) for one in node.attributes["pads"].as_ints()]
    else:
        found = elements(operand(node, 1))
        if found is None:
            return False
        pads = found
    axes = list(range(count))
    if operand(node, 3) is not None:
        given = facts.constant(operand(node, 3))
        if given is None:
            return False
        axes = [int(one) % count for one in given.ravel()]
    if axis not in axes:
        return True
    at = axes.index(axis)
    return pads[at] == 0 and pads[at + len(axes)] == 0
