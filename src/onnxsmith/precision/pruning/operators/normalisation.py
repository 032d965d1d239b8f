"""Normalisations with statistics of each channel."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, is_weight
from onnxsmith.precision.pruning.operators.base import Operator


class Normalisation(Operator):
    """Scale, bias, mean and variance lose the channel. InstanceNormalization averages over the axes behind it."""

    ops = ("BatchNormalization", "InstanceNormalization")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        stored = [value for value in node.inputs[1:] if value is not None]
        if len(node.outputs) > 1 or not all(is_weight(value) for value in stored):
            return
        for axis in links.live_axes(x):
            if axis > 1 and node.op_type == "InstanceNormalization":
                links.pin(x, axis, f"{node.op_type} averages over it")
                continue
            links.tie(x, axis, y, axis)
            for value in stored if axis == 1 else ():
                links.tie(y, 1, value, 0)
