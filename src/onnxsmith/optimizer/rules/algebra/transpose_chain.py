"""Two transposes in a row are one, or none."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules._patterns import passed_on, passes_on
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class TransposeChain(Rule):
    """Transpose(Transpose(x, p), q) is Transpose(x, p∘q); if that keeps every axis in place, it is x.

    A single Transpose that keeps every axis in place is removed, too.

    Without `perm` the axes are reversed. This is no match if the rank is unknown.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (float[B,A,C] y) {
            a = Transpose <perm = [2, 0, 1]> (x)
            b = Transpose <perm = [2, 1, 0]> (a)
            y = Relu(b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (float[B,A,C] y) {
            b = Transpose <perm = [1, 0, 2]> (x)
            y = Relu(b)
        }
    """

    anchor = ("Transpose",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        outer = perm(node)
        if outer is None:
            return None
        if outer == list(range(len(outer))):
            return passes_on(node)
        source = node.inputs[0]
        inner = source.producer() if source is not None else None
        if inner is None or inner.op_type != "Transpose" or inner.domain or inner.graph is not node.graph:
            return None
        first = perm(inner)
        if first is None or len(first) != len(outer):
            return None
        return Match(node, (node, inner), {"perm": [first[axis] for axis in outer], "source": inner.inputs[0]})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        if "perm" not in match.found:
            return passed_on(match)
        return tape.op("Transpose", [match.found["source"]], {"perm": match.found["perm"]})
