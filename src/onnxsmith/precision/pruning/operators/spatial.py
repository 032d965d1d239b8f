"""Operators that compute each channel by itself, from places beside each other: pools, Resize, Pad."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.known_integers import Elements, elements
from onnxsmith.precision.pruning.channel_links import Links, rank, static
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.operators.base import Operator, can_resize, operand

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
                links.pin(x, axis, f"{links.label} computes from several channels, or changes how many there are")

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
