"""Transposes on both sides of element-wise operators become one, or none."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules._elementwise import UNARY
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class TransposeThroughUnary(Rule):
    """Operators that treat every element alike do not depend on its position: Transpose(f(Transpose(x, p)), q) is
    f(Transpose(x, p∘q)), or f(x) if p∘q keeps every axis in place. f may be several operators in a row.

    Refused:
    1. An intermediate result has other readers, or is a graph output: both transposes would stay.

    No match: a `perm` that refers to a function's attribute; no `perm` with an unknown rank.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (float[A,B,C] y) {
            a = Transpose <perm = [0, 2, 1]> (x)
            b = Relu(a)
            c = Tanh(b)
            y = Transpose <perm = [0, 2, 1]> (c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (float[A,B,C] y) {
            b = Relu(x)
            y = Tanh(b)
        }
    """

    anchor = ("Transpose",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        between: list[ir.Node] = []
        at = maker(node.inputs[0], node, *UNARY)
        while at is not None:
            between.append(at)
            at = maker(at.inputs[0], node, *UNARY)
        first = maker(between[-1].inputs[0], node, "Transpose") if between else None
        if first is None:
            return None
        outer, inner = perm(node), perm(first)
        if outer is None or inner is None or len(outer) != len(inner):
            return None
        every = (node, *between, first)
        composed = [inner[axis] for axis in outer]
        return read_elsewhere(every) or Match(node, every, {"perm": composed})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        *between, first = match.nodes[1:]
        composed = match.found["perm"]
        value = first.inputs[0]
        if composed != list(range(len(composed))):
            value = tape.op("Transpose", [value], {"perm": composed})
        for node in reversed(between):
            value = tape.op(node.op_type, [value], dict(node.attributes))
        assert value is not None
        return value
