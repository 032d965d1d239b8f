"""Transpose, Squeeze and Unsqueeze: the same axes at other places."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Links, rank, static
from onnxsmith.precision.pruning.operators.base import Operator, operand


class Axes(Operator):
    """Each axis passes to its new place."""

    ops = ("Squeeze", "Transpose", "Unsqueeze")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        places = self._places(node, x, y)
        for axis in links.live_axes(x) if places is not None else ():
            assert places is not None
            if places.get(axis) is not None:
                links.tie(x, axis, y, places[axis])

    def _places(self, node: ir.Node, x: ir.Value, y: ir.Value) -> dict[int, int] | None:
        """The place of each axis in the result."""
        count, after = rank(x), rank(y)
        if count is None or after is None:
            return None
        if node.op_type == "Transpose":
            order = [int(axis) for axis in node.attributes["perm"].as_ints()] if "perm" in node.attributes else None
            return {axis: at for at, axis in enumerate(order if order is not None else range(count - 1, -1, -1))}
        longer = max(count, after)
        named = self._named(node, longer)
        if named is None and node.op_type == "Squeeze" and len(node.inputs) < 2:
            named = {axis for axis in range(count) if static(x, axis) == 1}
        if named is None:
            return None
        others = [axis for axis in range(longer) if axis not in named]
        squeezed = node.op_type == "Squeeze"
        return {axis: at for at, axis in enumerate(others)} if squeezed else dict(enumerate(others))

    def _named(self, node: ir.Node, count: int) -> set[int] | None:
        if "axes" in node.attributes:
            return {int(axis) % count for axis in node.attributes["axes"].as_ints()}
        array = facts.constant(operand(node, 1))
        return None if array is None else {int(axis) % count for axis in array.ravel()}
