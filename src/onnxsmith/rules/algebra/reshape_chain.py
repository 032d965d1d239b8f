"""A `Reshape` of what was only reshaped."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model import facts
from onnxsmith.rules._patterns import integer, maker
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class ReshapeChain(Rule):
    """Reshape, Flatten, Squeeze and Unsqueeze keep the elements and their order, so that a Reshape after one of them
    may read the data before it. What else reads the value in the middle still can.

    Refused:
    1. An element of the target is 0 and copies a dimension that is not provably the same before the first of the two.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,6] x) => (float[N,24] y) <int64[3] s = {-1, 2, 12}, int64[2] t = {-1, 24}> {
            a = Reshape(x, s)
            y = Reshape(a, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,6] x) => (float[N,24] y) <int64[2] t = {-1, 24}> {
            y = Reshape(x, t)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        middle = node.inputs[0]
        first = maker(middle, node, "Reshape", "Flatten", "Squeeze", "Unsqueeze")
        if first is None or first.inputs[0] is None or len(node.inputs) < 2:
            return None
        target = facts.constant(node.inputs[1])
        if target is None:
            return None
        allowzero = integer(node, "allowzero", 0)
        if allowzero is None:
            return None
        before, after = facts.dims(first.inputs[0]) or (), facts.dims(middle) or ()
        for axis, element in enumerate(target.ravel().tolist()):
            if (
                element == 0
                and not allowzero
                and not facts.same(before[axis : axis + 1] or None, after[axis : axis + 1])
            ):
                return NoMatch("the target copies a dimension that only the first result has", node.name or "")
        return Match(node, (node, first), {"source": first.inputs[0]})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Reshape", [match.found["source"], match.node.inputs[1]], dict(match.node.attributes))
