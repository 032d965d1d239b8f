"""A product with a transposed weight is `Gemm`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import FLOATS
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, NoMatch

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match


class TransposeGemm(PatternRule):
    """MatMul(x, Transpose(w)) of two matrices is Gemm with `transB`, which reads w unchanged. So a large weight in a
    data file need not be written again.

    Refused:
    1. The dtype is not known to be floating point: few runtimes have Gemm for other dtypes.

    No match: operands that are not known to be matrices; a Transpose of a value that is not an initializer; a Transpose
    that fold/constant computes, after which the product stays a MatMul. fold/constant leaves large weights, weights
    whose transposed copy would make the file grow too much, and weights that a caller may replace.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3] x, float[2,3] v) => (float[N,2] y) <float[2,3] v = {1, 2, 3, 4, 5, 6}> {
            t = Transpose <perm = [1, 0]> (v)
            y = MatMul(x, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3] x, float[2,3] v) => (float[N,2] y) <float[2,3] v = {1, 2, 3, 4, 5, 6}> {
            y = Gemm <transB = 1> (x, v)
        }
    """

    anchor = ("MatMul",)
    exactness = Exactness.REASSOCIATES
    pattern = "t = Transpose(w)  y = MatMul(x, t)"
    replacement = "Gemm <transB = 1> (x, w)"
    since = 11
    form = "an optional last operand"

    def check(self, found: Match) -> Answer:
        weight = found["w"]
        # a default of an input may stay one, because the rule does not read its values
        if not weight.is_initializer() or [len(facts.dims(found[name]) or ()) for name in "xw"] != [2, 2]:
            return None
        if perm(found.made("t")) != [1, 0]:
            return None
        if facts.is_constant(weight) and facts.UNFOLDED not in found.made("t").meta:
            return None
        if weight.dtype not in FLOATS:
            return NoMatch("the dtype is not known to be floating point", weight)
        return {}
