"""A bias of zeros."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ZeroBias(Rule):
    """Conv, ConvTranspose and Gemm need no bias of zeros. The zeros may be stored or computed, as in the exporter's
    Expand of a zero. Without the bias, the result may be -0.0 instead of 0.0, which is equal in value.

    Refused:
    1. The model's opset is below 11, where a Gemm needs its third input.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y)
        <float[2,1,1,1] w = {2, 3}, float zero = {0}, int64[1] two = {2}> {
            b = Expand(zero, two)
            y = Conv(x, w, b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y) <float[2,1,1,1] w = {2, 3}> {
            y = Conv(x, w)
        }
    """

    anchor = ("Conv", "ConvTranspose", "Gemm")
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if len(node.inputs) < 3 or node.inputs[2] is None or uniform(node.inputs[2]) != 0:
            return None
        if node.op_type == "Gemm" and facts.opset(node) < 11:
            return NoMatch("before opset 11 a Gemm needs its third input")
        return Match(node, (node,))

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op(match.node.op_type, match.node.inputs[:2], dict(match.node.attributes))
