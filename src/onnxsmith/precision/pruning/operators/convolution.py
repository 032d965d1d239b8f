"""Conv: output channels begin, input channels end; depthwise ones follow their input."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, is_weight, static
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.operators.base import Operator, integer, operand


class Convolution(Operator):
    """The weight is [out, in / groups, …].

    With several groups as many channels of each group go, at the same positions, because the weight has one axis of
    input channels for all groups. A depthwise one has a group for each input channel: the group goes.
    """

    ops = ("Conv",)

    def link(self, node: ir.Node, links: Links) -> None:
        x, weight, bias, y = node.inputs[0], node.inputs[1], operand(node, 2), node.outputs[0]
        if not (is_weight(weight) and (bias is None or is_weight(bias)) and static(y, 1) is not None):
            return
        assert x is not None
        assert weight is not None
        groups, outputs, inputs = integer(node, "group", 1), static(weight, 0) or 0, static(weight, 1) or 0
        if groups > 1 and inputs == 1:
            if links.is_live(x, 1):
                links.tie(x, 1, weight, 0, np.repeat(np.arange(groups), outputs // groups))
                links.tie(weight, 0, y, 1)
                _follow(links, bias, y)
            return
        if links.is_live(x, 1):
            links.tie(x, 1, weight, 1, None, np.tile(np.arange(inputs), groups))
            links.sums(x, 1, weight, 1)
        links.open(y, 1)
        links.tie(weight, 0, y, 1)
        if groups > 1:
            links.tie(y, 1, y, 1, None, np.tile(np.arange(outputs // groups), groups))
        _follow(links, bias, y)

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        kept = cuts.of(node.inputs[0], 1)
        if integer(node, "group", 1) > 1 and static(node.inputs[1], 1) == 1 and kept is not None:
            node.attributes["group"] = ir.AttrInt64("group", len(kept))


def _follow(links: Links, bias: ir.Value | None, y: ir.Value) -> None:
    if bias is not None:
        links.tie(y, 1, bias, 0)
