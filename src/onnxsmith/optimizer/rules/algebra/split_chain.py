"""A `Split` of a part of a `Split`, along the same axis."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _split
from onnxsmith.optimizer.rules._patterns import maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class SplitChain(Rule):
    """The parts of a part are parts of the whole: two Splits along one axis are one.

    Refused:
    1. The part that is split has other readers, or is a graph output.

    Parts whose sizes are not known numbers are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,6] x) => (float[N,2] a, float[N,1] c, float[N,3] d)
        <int64[2] outer = {2, 4}, int64[2] inner = {1, 3}> {
            a, b = Split <axis = 1> (x, outer)
            c, d = Split <axis = 1> (b, inner)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,6] x) => (float[N,2] a, float[N,1] c, float[N,3] d) <int64[3] sizes = {2, 1, 3}> {
            a, c, d = Split <axis = 1> (x, sizes)
        }
    """

    anchor = ("Split",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        part = node.inputs[0]
        outer = maker(part, node, "Split")
        inside, outside = _split.parts(node), _split.parts(outer) if outer is not None else None
        if part is None or outer is None or inside is None or outside is None or inside[0] != outside[0]:
            return None
        if len(part.uses()) > 1 or part.is_graph_output():
            return NoMatch("the part is used elsewhere too", part)
        place = outer.outputs.index(part)
        sizes = [*outside[1][:place], *inside[1], *outside[1][place + 1 :]]
        return Match(node, (node, outer), {"axis": inside[0], "sizes": sizes, "place": place}, outer)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        inner, outer = match.nodes
        found, opset = match.found, facts.opset(inner)
        parts = _split.split(tape, outer.inputs[0], found["axis"], found["sizes"], opset)
        place = found["place"]
        old = [*outer.outputs[:place], *inner.outputs, *outer.outputs[place + 1 :]]
        return dict(zip(old, parts, strict=True))
