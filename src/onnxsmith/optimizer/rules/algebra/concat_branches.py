"""The same operators on every part of a `Concat` become one operator on the whole."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import integer
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.optimizer.rules._equal_operators import Alike, Row


class ConcatBranches(Rule):
    """Concat(f(a), f(b)) is f(Concat(a, b)) if f is an element-wise operator, a Clip, a Transpose, or several of them,
    as in a · Sigmoid(a). f may have inputs that all parts share and that do not vary along the axis. The rule also
    applies to some neighbouring parts only. Fires if it takes fewer nodes.

    Refused:
    1. It takes as many nodes as before, because f has several inputs, and each must be concatenated.

    Stops at intermediate results with other readers, and at operators whose attributes differ between parts.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[4,1] x, float[4,2] z) => (float[4,3] y) {
            a = Sigmoid(x)
            b = Mul(x, a)
            c = Sigmoid(z)
            d = Mul(z, c)
            y = Concat <axis = 1> (b, d)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[4,1] x, float[4,2] z) => (float[4,3] y) {
            a = Concat <axis = 1> (x, z)
            b = Sigmoid(a)
            y = Mul(a, b)
        }
    """

    anchor = ("Concat",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        dims, axis = facts.dims(node.outputs[0]), integer(node, "axis", 1)
        if dims is None or axis is None or not -len(dims) <= axis < len(dims):
            return None
        from onnxsmith.optimizer.rules._equal_operators import Alike

        refusal = None
        for start, row in _rows(node):
            alike = Alike(node, row, axis % len(dims))
            more = len(row) < len(node.inputs)
            saved = len(alike.nodes()) - len(alike.steps) - len(alike.leaves) + (not more)
            if alike.steps and saved > 0:
                return Match(node, (node, *alike.nodes()), {"alike": alike, "start": start, "count": len(row)})
            if alike.steps and not more:
                refusal = NoMatch("it would take as many nodes")
        return refusal

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        alike: Alike = match.found["alike"]
        start, count = match.found["start"], match.found["count"]
        whole = alike.build(tape)
        if count == len(match.node.inputs):
            return whole
        inputs = [*match.node.inputs[:start], whole, *match.node.inputs[start + count :]]
        return tape.op("Concat", inputs, dict(match.node.attributes))


def _rows(node: ir.Node) -> Iterator[tuple[int, Row]]:
    """Yields neighbouring inputs that operators of the same type make, with the position of the first."""

    def made_by(value: ir.Value | None) -> str:
        maker = value.producer() if value is not None else None
        return "" if maker is None else maker.op_type

    start = 0
    for op_type, group in itertools.groupby(node.inputs, made_by):
        row = tuple(value for value in group if value is not None)
        if op_type and len(row) > 1:
            yield start, row
        start += len(row)
