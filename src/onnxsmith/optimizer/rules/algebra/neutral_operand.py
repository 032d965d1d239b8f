"""Arithmetic and logic with a number that changes nothing."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.optimizer.rules._patterns import fits, two_ways
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1, "Pow": 1, "And": True, "Or": False}
_ONE_WAY = ("Sub", "Div", "Pow")


class NeutralOperand(Rule):
    """x + 0, x - 0, x * 1, x / 1, x ** 1, x and true, x or false are x. Adding 0 turns -0.0 into 0.0, which is equal in
    value. The number may be a constant, or a tensor in which provably every element is this number: a mask of ones of
    any size, a comparison that is always true.

    Refused:
    1. The other operand's shape could change the result's: it has a higher rank, or a dimension that is not 1 and not
       provably x's.

    The rule does not match before opset 7, where attributes controlled broadcasting.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) <float one = {1}, float[4] zeros = {0, 0, 0, 0}> {
            a = Mul(one, x)
            b = Add(a, zeros)
            y = Relu(b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) {
            y = Relu(x)
        }
    """

    anchor = tuple(_NEUTRAL)
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if facts.opset(node) < 7:
            return None
        refused: NoMatch | None = None
        for source, other in two_ways(node)[: 1 if node.op_type in _ONE_WAY else 2]:
            if uniform(other) != _NEUTRAL[node.op_type]:
                continue
            array = facts.constant(other)
            shape = facts.dims(other) if array is None else array.shape
            if shape is not None and fits(shape, source):
                return Match(node, (node,), {"source": source})
            refused = NoMatch("the other operand's shape could change the result's", other)
        return refused

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source: ir.Value = match.found["source"]
        return source
