"""A value times its own `Sigmoid` is `Swish`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.rules._patterns import FLOATS, maker, read_elsewhere, too_old, two_ways
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class Swish(Rule):
    """x * Sigmoid(x) is Swish(x), also called SiLU (P. Ramachandran and others, 2017).

    Refused:
    1. The model's opset is below 24, which brought Swish.
    2. The Sigmoid is read by others too, or is a graph output.
    3. The dtype is not known to be float16, float or double.

    Before:
        <ir_version: 10, opset_import: ["": 24]>
        g (float[N] x) => (float[N] y) {
            a = Sigmoid(x)
            y = Mul(x, a)
        }

    After:
        <ir_version: 10, opset_import: ["": 24]>
        g (float[N] x) => (float[N] y) {
            y = Swish(x)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for source, other in two_ways(node):
            gate = maker(other, node, "Sigmoid")
            if gate is None or gate.inputs[0] is not source:
                continue
            if source.dtype not in FLOATS:
                return NoMatch("the dtype is not known to be floating point", source.name or "")
            refusal = too_old(node, "Swish", 24) or read_elsewhere((node, gate))
            return refusal or Match(node, (node, gate), {"source": source})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Swish", [match.found["source"]])
