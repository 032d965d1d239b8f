"""A `Pad` that adds nothing."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules._padding import padding
from onnxsmith.optimizer.rules._patterns import passed_on, passes_on
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class PadNoop(Rule):
    """A Pad whose amounts are all 0 is its data, for any padding value.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) <int64[4] p = {0, 0, 0, 0}> {
            a = Pad <mode = "reflect"> (x, p)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) {
            y = Relu(x)
        }
    """

    anchor = ("Pad",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = padding(node, any_value=True)
        if isinstance(found, NoMatch) or any((*found.begin, *found.end)):
            return None
        return passes_on(node)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return passed_on(match)
