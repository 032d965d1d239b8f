"""Expand and Tile: axes that are repeated."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, rank, static
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.operators.base import Operator, can_resize


class Repeating(Operator):
    """An axis that stays as long as it is passes; the sizes that Expand is given become smaller."""

    ops = ("Expand", "Tile")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        shift = (rank(y) or 0) - (rank(x) or 0)
        if rank(y) is None or (node.op_type == "Expand" and not can_resize(node, 1)):
            return
        for axis in links.live_axes(x):
            if static(y, axis + shift) == static(x, axis):
                links.tie(x, axis, y, axis + shift)
            else:
                links.pin(x, axis, f"{links.label} repeats it")

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        if node.op_type != "Expand" or node.inputs[1] is None or node.inputs[1].shape is None:
            return
        count = node.inputs[1].shape[0]
        assert isinstance(count, int)
        shift = (rank(node.outputs[0]) or 0) - count
        cut = cuts.axes(node.outputs[0])
        cuts.resize(node, 1, {axis - shift: len(kept) for axis, kept in cut.items() if axis >= shift})
