"""Reductions: axes that are not reduced pass."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Links, rank
from onnxsmith.precision.pruning.operators.base import Operator, integer, operand


class Reduction(Operator):
    """Channels along a reduced axis stay."""

    ops = (
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
        "ReduceProd", "ReduceSum", "ReduceSumSquare",
    )  # fmt: skip

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        count = rank(x)
        axes = None if count is None else _axes(node, count)
        if axes is None:
            return
        assert x is not None
        keeps = bool(integer(node, "keepdims", 1))
        for axis in links.live_axes(x):
            if axis in axes:
                links.pin(x, axis, f"{links.label} reduces it")
            else:
                links.tie(x, axis, y, axis if keeps else axis - sum(one < axis for one in axes))


def _axes(node: ir.Node, count: int) -> set[int] | None:
    if "axes" in node.attributes:
        return {int(axis) % count for axis in node.attributes["axes"].as_ints()}
    value = operand(node, 1)
    array = facts.constant(value)
    if value is not None and array is None:
        return None
    given = [] if array is None else [int(axis) % count for axis in array.ravel()]
    nothing = not given and integer(node, "noop_with_empty_axes", 0)
    return set(given) if given or nothing else set(range(count))
