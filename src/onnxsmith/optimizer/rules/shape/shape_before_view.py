"""Dimensions of a reshaped or repeated tensor are read from the tensor before."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Exactness, Match, Rule, is_sole_use

_CHANGES = (*_views.VIEWS, "Expand", "Tile", "Transpose")


class ShapeBeforeView(Rule):
    """Shape of the result of a Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile or Transpose can read the operator's
    data instead, if the dimensions stand side by side there, too. The result then has fewer readers, so that other
    rules may remove it. Fires only if another node reads the result as well: otherwise only its shape is used.

    No match: dimensions that are all numbers, because these are constants already; dimensions that the data does not
    have side by side; opsets below 15, where Shape has no start and end.

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
