"""A product with the reciprocal of a root is a quotient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import is_number
from onnxsmith.optimizer.rules.base import Exactness

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match


class ReciprocalDiv(PatternRule):
    """x * Reciprocal(Sqrt(v)), as torch writes x * rsqrt(v), is x / Sqrt(v); so is x * (1 / Sqrt(v)).

    Only for a root: the reciprocal of another value may overflow or underflow although the quotient does not. A root is
    never so small or so large.

    Refused:
    1. The reciprocal has other readers, or is a graph output.

    The rule does not match before opset 7, where attributes controlled broadcasting.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x, float[N,1] v) => (float[N,4] y) {
            r = Sqrt(v)
            i = Reciprocal(r)
            y = Mul(x, i)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x, float[N,1] v) => (float[N,4] y) {
            r = Sqrt(v)
            y = Div(x, r)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES
    pattern = "r = Sqrt(v)  y = Mul(x, either(Reciprocal(r), Div(c_one, r)))"
    replacement = "Div(x, r)"
    since = 7
    form = "operands that broadcast by themselves"
    sole_reader = True

    def check(self, found: Match) -> Answer:
        one = found.bindings.get("c_one")
        return {} if one is None or is_number(one, 1, found["r"]) else None
