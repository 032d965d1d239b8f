"""Operators that compute an element from others along an axis: channels along it stay."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Links, rank
from onnxsmith.precision.pruning.operators.base import Operator, integer

_ALL_BEHIND = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
_SOFT = ("Softmax", "LogSoftmax", "Hardmax")
_FLATTENED_UNTIL = 13
"""Until this opset, softmax flattens all axes from `axis` on (ONNX Changelog.md)."""


class Mixing(Operator):
    """Channels along an axis of which the operator computes a sum or an order stay; other axes pass."""

    ops = (*_ALL_BEHIND, *_SOFT, "CumSum", "LRN", "LpNormalization")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        mixed = self._mixed(node, rank(x) or 0, facts.opset(node))
        for axis in links.live_axes(x):
            if axis in mixed:
                links.pin(x, axis, f"{links.label} computes each channel from all of them")
            elif len(node.outputs) == 1:
                links.tie(x, axis, y, axis)

    def _mixed(self, node: ir.Node, count: int, opset: int) -> set[int]:
        if node.op_type in ("LRN", "CumSum"):
            return set(range(1, count)) if node.op_type != "CumSum" else set(range(count))
        old = node.op_type in _SOFT and opset < _FLATTENED_UNTIL
        axis = integer(node, "axis", 1 if old else -1) % max(1, count)
        return set(range(axis, count)) if old or node.op_type in _ALL_BEHIND else {axis}
