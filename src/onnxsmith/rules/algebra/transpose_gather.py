"""A `Gather` with one index from a transposed tensor."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.shapes import facts
from onnxsmith.rules._patterns import integer, maker
from onnxsmith.rules._views import perm
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class TransposeGather(Rule):
    """A Gather with one index removes an axis. If the other axes are then in their old order, the Gather can read the
    data before the Transpose: the last step of a sequence is the same, whether batch or time comes first.

    Refused:
    1. The axes that are left change places: the Transpose would still be there, behind the Gather.

    An index of rank 1 or more is no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[T,N,4] x) => (float[N,4] y) <int64 last = {-1}> {
            t = Transpose <perm = [1, 0, 2]> (x)
            y = Gather <axis = 1> (t, last)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[T,N,4] x) => (float[N,4] y) <int64 last = {-1}> {
            y = Gather <axis = 0> (x, last)
        }
    """

    anchor = ("Gather",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        transpose = maker(node.inputs[0], node, "Transpose")
        axis = integer(node, "axis", 0)
        order = perm(transpose) if transpose is not None else None
        if transpose is None or order is None or axis is None or facts.dims(node.inputs[1]) != ():
            return None
        if not -len(order) <= axis < len(order):
            return None
        taken = order[axis]
        left = [one for one in order if one != taken]
        if left != sorted(left):
            return NoMatch("the axes that are left change places", node.name or "")
        return Match(node, (node, transpose), {"source": transpose.inputs[0], "axis": taken})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Gather", [match.found["source"], match.node.inputs[1]], {"axis": match.found["axis"]})
