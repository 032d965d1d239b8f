"""A `Resize` to the data's own size."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _resizes
from onnxsmith.optimizer.rules._patterns import passed_on, passes_on
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ResizeNoop(Rule):
    """A Resize or Upsample by 1 along every axis changes nothing, and neither does a Resize to sizes that are provably
    the data's. This holds in every mode of interpolation, because each new element lies on an old element.

    Modes that take elements from elsewhere (`tf_crop_and_resize`, `tf_half_pixel_for_nn`) are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,C,H,W] x) => (float[N,C,H,W] y) {
            s = Shape(x)
            a = Resize <mode = "linear"> (x, , , s)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,C,H,W] x) => (float[N,C,H,W] y) {
            y = Relu(x)
        }
    """

    anchor = ("Resize", "Upsample")
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if not _resizes.is_plain(node):
            return None
        factors = _resizes.scales(node)
        by_one = factors is not None and bool(factors) and all(factor == 1 for factor in factors)
        if not by_one and not facts.same(_resizes.sizes(node), facts.dims(node.inputs[0])):
            return None
        return passes_on(node)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return passed_on(match)
