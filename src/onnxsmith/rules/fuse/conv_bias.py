"""A number for each channel, added after a convolution, goes into its bias."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.model import facts
from onnxsmith.rules._channels import per_channel
from onnxsmith.rules._patterns import maker, read_elsewhere, two_ways
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class ConvBias(Rule):
    """Conv(x) + c is one Conv whose bias is b + c, where c is one number or one for each output channel.

    The bias is computed in float64 and stored in the dtype it had.

    Refused:
    1. The convolution's result is read by others too, or is a graph output.
    2. The convolution has a bias that is not a constant.
    3. The constant varies along other axes than the channels, or raises the rank.
    4. The number of channels is not known.
    5. The sum of the two overflows.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y)
        <float[2,1,1,1] w = {2, 3}, float[2] b = {1, 2}, float[1,2,1,1] c = {0.5, -1}> {
            a = Conv(x, w, b)
            y = Add(a, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y)
        <float[2,1,1,1] w = {2, 3}, float[2] b = {1.5, 1}> {
            y = Conv(x, w, b)
        }
    """

    anchor = ("Add",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for source, other in two_ways(node):
            conv, added = maker(source, node, "Conv"), facts.constant(other)
            if conv is None or added is None:
                continue
            refusal = read_elsewhere((node, conv))
            if refusal is not None:
                return refusal
            weight = facts.dims(conv.inputs[1])
            if weight is None or not isinstance(weight[0], int):
                return NoMatch("the number of output channels is not known", conv.name or "")
            vector = per_channel(added, weight[0], len(weight))
            if vector is None:
                return NoMatch("the constant is not one number for each channel", other.name or "")
            bias = np.zeros(1, added.dtype)
            if len(conv.inputs) > 2 and conv.inputs[2] is not None:
                known = facts.constant(conv.inputs[2])
                if known is None:
                    return NoMatch("the bias is not a constant", conv.inputs[2].name or "")
                bias = known
            with np.errstate(over="ignore"):
                total = (bias.astype(np.float64) + vector).astype(added.dtype)
            if not np.isfinite(total).all():
                return NoMatch("the bias would overflow", other.name or "")
            return Match(node, (node, conv), {"bias": total, "name": other.name or "bias"})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        conv = match.nodes[1]
        bias = tape.initializer(ir.tensor(match.found["bias"]), name=f"{match.found['name']}_folded_bias")
        return tape.op("Conv", [*conv.inputs[:2], bias], dict(conv.attributes))
