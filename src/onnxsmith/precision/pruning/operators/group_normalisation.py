"""GroupNormalization: statistics of some channels together."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, is_weight, static
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.operators.base import Operator, integer


class GroupNormalisation(Operator):
    """Whole groups go: without some of its channels the mean of a group would be another one. Scale and bias have an
    element for each channel, before opset 21 for each group."""

    ops = ("GroupNormalization",)

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        count, groups = static(x, 1), integer(node, "num_groups", 1)
        stored = [value for value in node.inputs[1:3] if value is not None]
        assert x is not None
        for axis in links.live_axes(x):
            if axis == 0:
                links.tie(x, 0, y, 0)
            elif axis > 1:
                links.pin(x, axis, f"{links.label} averages over it")
            elif count is not None and count % groups == 0 and all(is_weight(value) for value in stored):
                self._tie(links, x, y, count // groups, stored)

    def _tie(self, links: Links, x: ir.Value, y: ir.Value, each: int, stored: list[ir.Value]) -> None:
        count = static(x, 1) or 0
        first = np.arange(count) // each * each
        links.tie(x, 1, x, 1, None, first)
        links.tie(x, 1, y, 1)
        for value in stored:
            by_channel = static(value, 0) == count
            links.tie(y, 1, value, 0, None, np.arange(count) if by_channel else np.arange(count) // each)

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        kept, groups, count = cuts.of(node.inputs[0], 1), integer(node, "num_groups", 1), static(node.inputs[0], 1)
        if kept is not None and count is not None:
            node.attributes["num_groups"] = ir.AttrInt64("num_groups", len(kept) * groups // count)
