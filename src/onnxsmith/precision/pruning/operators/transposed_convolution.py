"""ConvTranspose: as Conv, with the axes of the weight exchanged."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, is_weight, static
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.operators.base import Operator, integer, operand


class TransposedConvolution(Operator):
    """The weight is [in, out / groups, …]: all groups have the same positions of output channels."""

    ops = ("ConvTranspose",)

    def link(self, node: ir.Node, links: Links) -> None:
        x, weight, bias, y = node.inputs[0], node.inputs[1], operand(node, 2), node.outputs[0]
        if not (is_weight(weight) and (bias is None or is_weight(bias)) and static(y, 1) is not None):
            return
        assert x is not None
        assert weight is not None
        groups, inputs, outputs = integer(node, "group", 1), static(weight, 0) or 0, static(weight, 1) or 0
        if groups > 1 and inputs == groups:
            if links.is_live(x, 1):
                links.tie(x, 1, weight, 0)
                links.tie(weight, 0, y, 1, np.repeat(np.arange(groups), outputs))
                if bias is not None:
                    links.tie(y, 1, bias, 0)
            return
        if links.is_live(x, 1):
            links.tie(x, 1, weight, 0)
            links.tie(weight, 0, weight, 0, None, np.tile(np.arange(inputs // groups), groups))
            links.sums(x, 1, weight, 0)
        links.open(y, 1)
        links.tie(weight, 1, y, 1, np.tile(np.arange(outputs), groups))
        if bias is not None:
            links.tie(y, 1, bias, 0)

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        kept, groups = cuts.of(node.inputs[0], 1), integer(node, "group", 1)
        if groups > 1 and static(node.inputs[1], 0) == groups and kept is not None:
            node.attributes["group"] = ir.AttrInt64("group", len(kept))
