"""`Cast` to the input's own dtype."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.rules._patterns import integer, passed_on, passes_on
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class CastSame(Rule):
    """A Cast to the input's own dtype changes nothing.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            a = Cast <to = 1> (x)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = Relu(x)
        }
    """

    anchor = ("Cast",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        source = node.inputs[0]
        if source is None or source.dtype is None or source.dtype.value != integer(node, "to", 0):
            return None
        return passes_on(node)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return passed_on(match)
