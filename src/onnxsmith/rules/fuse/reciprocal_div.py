"""A product with the reciprocal of a root is a quotient."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.shapes import facts
from onnxsmith.rules._patterns import is_number, maker, read_elsewhere, two_ways
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class ReciprocalDiv(Rule):
    """x * Reciprocal(Sqrt(v)), as torch writes x * rsqrt(v), is x / Sqrt(v); so is x * (1 / Sqrt(v)).

    For a root only: one over any other value may overflow or underflow where the quotient does not, while the root of a
    number is never so small or so large.

    Refused:
    1. The inverse has other readers, or is a graph output.

    Before opset 7 broadcasting was said by attributes; the rule does not match then.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x, float[N,1] v) => (float[N,4] y) {
            r = Sqrt(v)
            i = Reciprocal(r)
            y = Mul(x, i)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x, float[N,1] v) => (float[N,4] y) {
            r = Sqrt(v)
            y = Div(x, r)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if facts.opset(node) < 7:
            return None
        for source, other in two_ways(node):
            inverse = maker(other, node, "Reciprocal", "Div")
            root = inverse.inputs[-1] if inverse is not None else None
            if inverse is None or root is None or maker(root, node, "Sqrt") is None:
                continue
            if inverse.op_type == "Div" and not is_number(inverse.inputs[0], 1, root):
                continue
            every = (node, inverse)
            return read_elsewhere(every) or Match(node, every, {"inputs": [source, root]})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Div", match.found["inputs"])
