"""A value times its own `Sigmoid` is `Swish`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules import _activations, _formula
from onnxsmith.optimizer.rules._patterns import FLOATS, read_elsewhere, too_old
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class Swish(Rule):
    """x * Sigmoid(x) is Swish(x), also called SiLU, and x * Sigmoid(a·x) is Swish with alpha = a, also called QuickGelu
    for a = 1.702 (P. Ramachandran and others, 2017).

    Equal up to rounding for all numbers, infinities and NaN: if a·x overflows, the Sigmoid is 0 or 1 already.

    Refused:
    1. The model's opset is below 24, which introduced Swish.
    2. An intermediate result has other readers, or is a graph output.
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
    makes = "Swish"

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = next((way for way in _formula.ways(node, _activations.SWISH) if not way.argument.get((0, 0))), None)
        if found is None:
            return None
        if found.source.dtype not in FLOATS:
            return NoMatch("the dtype is not known to be floating point", found.source)
        refusal = too_old(node, "Swish", 24) or read_elsewhere(found.nodes)
        return refusal or Match(node, found.nodes, {"source": found.source, "alpha": found.argument[1, 0]})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        alpha = match.found["alpha"]
        return tape.op("Swish", [match.found["source"]], {"alpha": alpha} if alpha != 1 else {})
