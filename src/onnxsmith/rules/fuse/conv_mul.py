"""A factor for each channel after a convolution goes into its weights."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.model import facts
from onnxsmith.rules._channels import per_channel
from onnxsmith.rules._patterns import maker, read_elsewhere, two_ways
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class ConvMul(Rule):
    """Conv(x) * c is one Conv with weights W·c and bias b·c, where c is one number or one for each output channel.

    The weights are computed in float64 and stored in the dtype they had.

    Refused:
    1. The convolution's result is read by others too, or is a graph output.
    2. Weights or bias are not constants (a graph input with a default is none).
    3. The weights are read by others too: the model would hold both.
    4. The constant varies along other axes than the channels, or raises the rank.
    5. A product overflows, or a small one loses bits: it is not a normal number of the weights' dtype.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y)
        <float[2,1,1,1] w = {2, 3}, float[2] b = {1, 2}, float[2,1,1] c = {0.5, -1}> {
            a = Conv(x, w, b)
            y = Mul(a, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y)
        <float[2,1,1,1] w = {1, -3}, float[2] b = {0.5, -2}> {
            y = Conv(x, w, b)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for source, other in two_ways(node):
            conv, factor = maker(source, node, "Conv"), facts.constant(other)
            if conv is None or factor is None:
                continue
            refusal = read_elsewhere((node, conv))
            if refusal is not None:
                return refusal
            return _folded(node, conv, other)
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        conv = match.nodes[1]
        inputs = [conv.inputs[0]]
        for array, value in zip(match.found["arrays"], conv.inputs[1:], strict=False):
            name = value.name if value is not None and value.name else "conv"
            inputs.append(tape.initializer(ir.tensor(array), name=f"{name}_folded"))
        return tape.op("Conv", inputs, dict(conv.attributes))


def _folded(node: ir.Node, conv: ir.Node, factor: ir.Value) -> Match | NoMatch:
    values = [value for value in conv.inputs[1:] if value is not None]
    arrays = [facts.constant(value) for value in values]
    if any(array is None or array.dtype.kind != "f" for array in arrays) or arrays[0] is None:
        return NoMatch("weights or bias are not constants", conv.name or "")
    if len(values[0].uses()) > 1 or values[0].is_graph_output():
        return NoMatch("the weights are used elsewhere too", values[0].name or "")
    number = facts.constant(factor)
    scale = None if number is None else per_channel(number, arrays[0].shape[0], arrays[0].ndim)
    if scale is None:
        return NoMatch("the constant is not one number for each channel", factor.name or "")
    products = []
    for array in arrays:
        assert array is not None
        exact = array.astype(np.float64) * scale.reshape(-1, *[1] * (array.ndim - 1))
        size, limits = np.abs(exact), np.finfo(array.dtype)
        if not ((size <= limits.max) & ((size >= limits.tiny) | (array == 0) | (exact == 0))).all():
            return NoMatch("a product is out of the range of the weights' dtype", factor.name or "")
        products.append(exact.astype(array.dtype))
    return Match(node, (node, conv), {"arrays": products})
