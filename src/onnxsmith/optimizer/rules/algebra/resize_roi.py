"""A region of interest that a `Resize` does not use."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._resizes import is_plain
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ResizeRoi(Rule):
    """Only the mode `tf_crop_and_resize` uses the region of interest, the second input of a Resize. In other modes this
    input is removed, with the nodes that compute it.

    Refused:
    1. The model's opset is below 13: in opset 11 the input is required.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[1,1,2,2] x, float[8] z) => (float[1,1,4,4] y) <float[4] scales = {1, 1, 2, 2}> {
            r = Neg(z)
            y = Resize(x, r, scales)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[1,1,2,2] x, float[8] z) => (float[1,1,4,4] y) <float[4] scales = {1, 1, 2, 2}> {
            y = Resize(x, , scales)
        }
    """

    anchor = ("Resize",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        opset = facts.opset(node)
        if len(node.inputs) < 3 or node.inputs[1] is None or opset < 11 or not is_plain(node):
            return None
        if opset < 13:
            if facts.is_constant(node.inputs[1]):
                return None
            return NoMatch(f"opset {opset} asks for the input")
        return Match(node, (node,))

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source, _, *rest = match.node.inputs
        return tape.op("Resize", [source, None, *rest], dict(match.node.attributes))
