"""Leaves out inputs of zeros that an operator does not need."""

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


_HIDDEN, _CELL, _PEEPHOLES = 5, 6, 7


class ZeroState(Rule):
    """RNN, GRU and LSTM use zeros as the default of the initial state and the peepholes. So inputs of zeros are
    removed, whether they are stored or computed for the size of the batch. Without them, the result may be -0.0 instead
    of 0.0, which is equal in value. A bias of zeros stays, because onnxruntime is slower without a bias.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[T,N,2] x) => (float[T,1,N,1] y)
        <float[1,3,2] w = {1, 2, 3, 4, 5, 6}, float[1,3,1] r = {1, 2, 3}, int64[1] one = {1}> {
            n = Shape <start = 1, end = 2> (x)
            s = Concat <axis = 0> (one, n, one)
            h = ConstantOfShape(s)
            y, last = GRU <hidden_size = 1> (x, w, r, , , h)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[T,N,2] x) => (float[T,1,N,1] y)
        <float[1,3,2] w = {1, 2, 3, 4, 5, 6}, float[1,3,1] r = {1, 2, 3}> {
            y, last = GRU <hidden_size = 1> (x, w, r)
        }
    """

    anchor = ("GRU", "LSTM", "RNN")
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        inputs = list(node.inputs)
        for place in (_HIDDEN, _CELL, _PEEPHOLES):
            if place < len(inputs) and uniform(inputs[place]) == 0:
                inputs[place] = None
        if inputs == list(node.inputs):
            return None
        while inputs[-1] is None:
            inputs.pop()
        return Match(node, (node,), {"inputs": inputs})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> dict[ir.Value, ir.Value]:
        node = match.node
        made = tape.op_multi_out(
            node.op_type, match.found["inputs"], dict(node.attributes), num_outputs=len(node.outputs)
        )
        for old, new in zip(node.outputs, made, strict=True):
            new.name = old.name and new.name
        return dict(zip(node.outputs, made, strict=True))
