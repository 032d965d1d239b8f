"""`Concat` of one value."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.rules.algebra.identity import Identity
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class ConcatSingle(Rule):
    """A Concat with one input gives that input.

    Refused:
    1. The result is a graph output that needs a value of its own, as for algebra/identity.

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
        return Identity().match(node) if len(node.inputs) == 1 else None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return Identity().rewrite(tape, match)
