"""Transposes on both sides of element-wise operators become one, or none."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.rules._patterns import maker, read_elsewhere
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule

_UNARY = (
    *("Abs", "Cast", "Ceil", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log"),
    *("Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt"),
    *("Swish", "Tanh", "ThresholdedRelu"),
)
"""Operators with one input that treat every element alike, wherever it is."""


class TransposeThroughUnary(Rule):
    """Operators that treat every element alike do not see its place: Transpose(f(Transpose(x, p)), q) is
    f(Transpose(x, p∘q)), and f(x) where that keeps every axis in place. f may be several operators in a row.

    Refused:
    1. A result in the middle is read by others too, or is a graph output: both transposes would stay.

    Transposes without `perm`, or with one that a function's caller gives, are no match.

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
        at = maker(node.inputs[0], node, *_UNARY)
        while at is not None:
            between.append(at)
            at = maker(at.inputs[0], node, *_UNARY)
        first = maker(between[-1].inputs[0], node, "Transpose") if between else None
        if first is None:
            return None
        outer, inner = _perm(node), _perm(first)
        if outer is None or inner is None or len(outer) != len(inner):
            return None
        every = (node, *between, first)
        perm = [inner[axis] for axis in outer]
        return read_elsewhere(every) or Match(node, every, {"perm": perm})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        *between, first = match.nodes[1:]
        perm = match.found["perm"]
        value = first.inputs[0]
        if perm != list(range(len(perm))):
            value = tape.op("Transpose", [value], {"perm": perm})
        for node in reversed(between):
            value = tape.op(node.op_type, [value], dict(node.attributes))
        assert value is not None
        return value


def _perm(node: ir.Node) -> list[int] | None:
    given = node.attributes.get("perm")
    return None if given is None or given.is_ref() else list(given.as_ints())
