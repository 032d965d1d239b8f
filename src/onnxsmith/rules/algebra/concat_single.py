"""`Concat` of one value."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.rules._patterns import passed_on, passes_on
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class ConcatSingle(Rule):
    """A Concat with one input gives that input.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            a = Concat <axis = 0> (x)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = Relu(x)
        }
    """

    anchor = ("Concat",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        return passes_on(node) if len(node.inputs) == 1 else None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return passed_on(match)
