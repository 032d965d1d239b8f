"""`Gelu`, written out with `Erf` or with `Tanh`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules import _activations, _formula
from onnxsmith.optimizer.rules._patterns import FLOATS, read_elsewhere, too_old
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class Gelu(Rule):
    """x/2 · (1 + erf(x/√2)) is Gelu(x), and x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))) is its approximation (D.
    Hendrycks and K. Gimpel, 2016), for any order of factors and summands, and wherever the constants are multiplied in.

    Equal up to rounding for every number whose intermediate values stay within the dtype, and for infinities and NaN.
    If x · (1 + erf(…)) comes before the half, a number above half of the largest overflows: it gave infinity, and gives
    x afterwards. The overflow of x³ in the approximation changes nothing, because tanh is ±1 there.

    Refused:
    1. The model's opset is below 20, which introduced Gelu.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float16, float or double.

    Other constants, or constants that raise the rank, are no match.

    Before:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N] x) => (float[N] y) <float root = {1.4142135}, float one = {1}, float half = {0.5}> {
            a = Div(x, root)
            b = Erf(a)
            c = Add(b, one)
            d = Mul(x, c)
            y = Mul(d, half)
        }

    After:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N] x) => (float[N] y) {
            y = Gelu <approximate = "none"> (x)
        }
    """

    anchor = ("Mul", "Div")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for approximate, formula in _activations.GELU.items():
            found = _formula.find(node, formula)
            if found is None:
                continue
            if found.source.dtype not in FLOATS:
                return NoMatch("the dtype is not known to be floating point", found.source)
            refusal = too_old(node, "Gelu", 20) or read_elsewhere(found.nodes)
            return refusal or Match(node, found.nodes, {"source": found.source, "approximate": approximate})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Gelu", [match.found["source"]], {"approximate": match.found["approximate"]})
