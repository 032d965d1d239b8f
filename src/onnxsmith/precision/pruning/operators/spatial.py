"""Operators that compute each channel by itself, from places beside each other: pools, Resize, Pad."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.shapes import facts
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.links import Links, rank, static
from onnxsmith.precision.pruning.operators.base import Operator, operand

_POOLS = ("AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool")
_SIZES = 3
"""The operand of Resize with the sizes of the result."""


class Spatial(Operator):
    """Axes of a pool before the places, and axes that Resize and Pad leave as long as they are, pass."""

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
                links.pin(x, axis, f"{node.op_type} computes from several channels")

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        sizes = facts.constant(operand(node, _SIZES)) if node.op_type == "Resize" else None
        cut = cuts.axes(node.inputs[0])
        if sizes is None or not len(sizes) or not cut:
            return
        axes = _axes(node)
        cuts.replace(
            node,
            _SIZES,
            [len(cut[axis]) if axis in cut else int(size) for axis, size in zip(axes, sizes, strict=True)],
        )


def _axes(node: ir.Node) -> list[int]:
    count = rank(node.inputs[0]) or 0
    if "axes" in node.attributes:
        return [axis % count for axis in node.attributes["axes"].as_ints()]
    return list(range(count))


def _sizes_known(node: ir.Node) -> bool:
    """Whether the sizes can be changed: the operand with the sizes is constant, or is not there."""
    value = operand(node, _SIZES) if node.op_type == "Resize" else None
    return value is None or facts.constant(value) is not None


def _unpadded(node: ir.Node, axis: int) -> bool:
    count = rank(node.inputs[0]) or 0
    if "pads" in node.attributes:
        pads = [int(one) for one in node.attributes["pads"].as_ints()]
    else:
        array = facts.constant(operand(node, 1))
        if array is None:
            return False
        pads = [int(one) for one in array.ravel()]
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
