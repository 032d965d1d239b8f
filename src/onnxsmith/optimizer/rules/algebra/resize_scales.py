"""A `Resize` to computed sizes that are constant multiples of the data's sizes."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.optimizer.rules import _resizes
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ResizeScales(Rule):
    """Sizes that are provably integer multiples of the data's sizes, for every size, become constant scales. The result
    is the same, because runtimes divide the sizes by the data's sizes to get the scales.

    Refused:
    1. A size is not an integer multiple of the data's size. Half of an odd size, for example, has another scale than
       0.5.

    No match: constant or unknown sizes; `axes`; policies that keep the aspect ratio; the modes `tf_crop_and_resize` and
    `tf_half_pixel_for_nn`; opsets below 11, where Resize had no sizes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y) <int64[4] twice = {1, 1, 2, 2}> {
            s = Shape(x)
            t = Mul(s, twice)
            y = Resize <mode = "linear"> (x, , , t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y) <float[4] scales = {1, 1, 2, 2}> {
            y = Resize <mode = "linear"> (x, , scales)
        }
    """

    anchor = ("Resize",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        sizes, dims = _resizes.sizes(node), facts.dims(node.inputs[0])
        if sizes is None or dims is None or not _resizes.is_plain(node) or len(sizes) != len(dims):
            return None
        if all(isinstance(size, int) for size in sizes):
            return None
        factors: list[float] = []
        for size, dim in zip(sizes, dims, strict=True):
            factor = None if dim is None else symbols.exact_quotient(size, dim)
            if not isinstance(factor, int) or factor < 1:
                return NoMatch("a size is not a whole multiple of the data's")
            factors.append(factor)
        return Match(node, (node,), {"factors": factors})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        node = match.node
        return _resizes.write(tape, node.inputs[0], match.found["factors"], dict(node.attributes), facts.opset(node))
