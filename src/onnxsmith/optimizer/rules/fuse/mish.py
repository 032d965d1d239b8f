"""`Mish`, written out with `Softplus` and `Tanh`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules import _formula
from onnxsmith.optimizer.rules._patterns import FLOATS, read_elsewhere, too_old
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_FORMULA = _formula.Formula(("Tanh", "Softplus"), {(1, 0): 1.0}, {(1, 1): 1.0})


class Mish(Rule):
    """x * Tanh(Softplus(x)) is Mish(x), by the definition of that operator (D. Misra, 2019).

    Equal up to rounding for all numbers, infinities and NaN.

    Refused:
    1. The model's opset is below 18, which introduced Mish.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float16, float or double.

    A Softplus that is itself written out, as Log(1 + Exp(x)), is no match: it overflows and underflows earlier.

    Before:
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N] x) => (float[N] y) {
            a = Softplus(x)
            b = Tanh(a)
            y = Mul(x, b)
        }

    After:
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N] x) => (float[N] y) {
            y = Mish(x)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _formula.find(node, _FORMULA)
        if found is None:
            return None
        if found.source.dtype not in FLOATS:
            return NoMatch("the dtype is not known to be floating point", found.source)
        refusal = too_old(node, "Mish", 18) or read_elsewhere(found.nodes)
        return refusal or Match(node, found.nodes, {"source": found.source})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Mish", [match.found["source"]])
