"""Dimensions of a reshaped or repeated tensor are read before it was reshaped or repeated."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Exactness, Match, Rule, is_sole_use

_CHANGES = (*_views.VIEWS, "Expand", "Tile", "Transpose")


class ShapeBeforeView(Rule):
    """Shape of the result of a Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile or Transpose reads the data before
    it, where the dimensions that are read stand side by side there too. The tensor between is then read by fewer nodes,
    so that other rules may take it away. It is done where another node reads the tensor as well: otherwise the operator
    itself has no use.

    Dimensions that are all numbers are constants already; those that the data has not, or has not side by side, are no
    match. The opset has to be 15 or newer, since which Shape has a start and an end.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H] x) => (int64[2] s, float[N,2,H,3] y)
        <int64[1] three = {3}, int64[4] r = {1, 1, 1, 3}> {
            a = Unsqueeze(x, three)
            y = Expand(a, r)
            s = Shape <start = 1, end = 3> (a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H] x) => (int64[2] s, float[N,2,H,3] y)
        <int64[1] three = {3}, int64[4] r = {1, 1, 1, 3}> {
            a = Unsqueeze(x, three)
            y = Expand(a, r)
            s = Shape <start = 1> (x)
        }
    """

    anchor = ("Shape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | None:
        value = node.inputs[0]
        before = maker(value, node, *_CHANGES)
        dims, sizes = facts.dims(value), facts.dims(before.inputs[0]) if before is not None else None
        if value is None or before is None or dims is None or sizes is None or facts.opset(node) < 15:
            return None
        start, end = integer(node, "start", 0), integer(node, "end", len(dims))
        if start is None or end is None or is_sole_use(value):
            return None
        wanted = dims[start:end]
        if not wanted or all(isinstance(dim, int) for dim in wanted):
            return None
        places = range(len(sizes) - len(wanted) + 1)
        place = next((at for at in places if facts.same(sizes[at : at + len(wanted)], wanted)), None)
        if place is None:
            return None
        bounds = {"start": place} if place else {}
        if place + len(wanted) < len(sizes):
            bounds["end"] = place + len(wanted)
        return Match(node, (node,), {"source": before.inputs[0], "bounds": bounds})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Shape", [match.found["source"]], match.found["bounds"])
