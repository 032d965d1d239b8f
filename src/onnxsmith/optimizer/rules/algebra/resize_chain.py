"""Two nearest-neighbour `Resize`s in a row."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _resizes
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_MOST = 2**10
"""The largest product of both scales. A choice: far above any upsampling, and positions stay exact in float32."""


class ResizeChain(Rule):
    """Two Resizes that repeat each element an integer number of times are one Resize, whose scales are the products.
    Repeats along one axis after another are written like this.

    Refused:
    1. The result of the first has other readers, or is a graph output.

    Modes other than `nearest` with `asymmetric` and `floor`, and scales that are not integers, are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y)
        <float[4] high = {1, 1, 2, 1}, float[4] wide = {1, 1, 1, 3}> {
            a = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
                (x, , high)
            y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
                (a, , wide)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y) <float[4] scales = {1, 1, 2, 3}> {
            y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
                (x, , scales)
        }
    """

    anchor = ("Resize",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        first = maker(node.inputs[0], node, "Resize")
        if first is None or facts.opset(node) < 11:
            return None
        one, two = _repeats(first), _repeats(node)
        if one is None or two is None or len(one) != len(two):
            return None
        factors = [a * b for a, b in zip(one, two, strict=True)]
        if max(factors) > _MOST:
            return None
        return read_elsewhere((node, first)) or Match(node, (node, first), {"factors": factors})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        node, first = match.nodes
        opset = facts.opset(node)
        return _resizes.write(tape, first.inputs[0], match.found["factors"], dict(node.attributes), opset)


def _repeats(node: ir.Node) -> list[int] | None:
    """Returns how often a Resize repeats the elements along each axis; None for other Resizes."""
    said = {name: node.attributes.get(name) for name in _resizes.REPEATS}
    if not _resizes.is_plain(node) or set(node.attributes) - set(said):
        return None
    words = {name: attribute.as_string() for name, attribute in said.items() if attribute is not None}
    if {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", **words} != _resizes.REPEATS:
        return None
    scales = _resizes.scales(node)
    if not scales or any(scale < 1 or scale != int(scale) for scale in scales):
        return None
    return [int(scale) for scale in scales]
