"""A `Pad` that adds nothing."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.rules._padding import padding
from onnxsmith.rules.algebra.identity import Identity
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class PadNoop(Rule):
    """A Pad whose amounts are all 0 gives the data, whatever it would pad with.

    Refused:
    1. The result is a graph output that needs a value of its own, as for algebra/identity.

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
        return Identity().match(node)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return Identity().rewrite(tape, match)
