"""A `Reshape` to the data's own shape."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import passed_on, passes_on
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ReshapeNoop(Rule):
    """A Reshape whose result has the data's shape, provably for every size, gives the data. Squeeze,
    Unsqueeze and Flatten that change no dimension are the same.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4] x) => (float[batch,4] y) <int64[2] t = {-1, 4}> {
            a = Reshape(x, t)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4] x) => (float[batch,4] y) {
            y = Relu(x)
        }
    """

    anchor = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        before, after = facts.dims(node.inputs[0]), facts.dims(node.outputs[0])
        if not facts.same(before, after):
            return None
        return passes_on(node)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return passed_on(match)
