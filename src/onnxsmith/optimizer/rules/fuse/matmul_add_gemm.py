"""`MatMul` of two matrices and `Add` are one `Gemm`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import FLOATS
from onnxsmith.optimizer.rules.base import Exactness, NoMatch

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match


class MatmulAddGemm(PatternRule):
    """MatMul(x, W) + c with a matrix x and constant W and c is Gemm(x, W, c). Tensors of more dimensions are no match,
    because they would need a Reshape before and after. Zeros are left to algebra/neutral-operand, which leaves a
    MatMul.

    Refused:
    1. The product has other readers, or is a graph output.
    2. x is not provably a matrix, or W is not a matrix.
    3. The dtype is not known to be float16, float or double.
    4. The constant does not broadcast to one row: it has several rows, raises the rank, or is wider than W.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2] c = {1, -1}> {
            a = MatMul(x, w)
            y = Add(a, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2] c = {1, -1}> {
            y = Gemm(x, w, c)
        }
    """

    anchor = ("Add",)
    exactness = Exactness.REASSOCIATES
    pattern = "a = MatMul(x, c_w)  y = Add(a, c_b)"
    replacement = "Gemm(x, c_w, c_b)"
    since = 7
    form = "a last operand that broadcasts by itself"
    sole_reader = True

    def check(self, found: Match) -> Answer:
        rows, product = facts.dims(found["x"]), found.made("a").name or ""
        if rows is None or len(rows) != 2 or (weight := found.constant("c_w")).ndim != 2 or not weight.size:
            return NoMatch("it is not provably a product of two matrices", product)
        if found["c_w"].dtype not in FLOATS:
            return NoMatch("the dtype is none that Gemm is sure to have", product)
        added = found.constant("c_b")
        if added.ndim > 2 or added.shape[:-1] not in ((), (1,)) or added.shape[-1:] not in ((), (1,), weight.shape[1:]):
            return NoMatch("the constant is not one row as wide as the product", found["c_b"])
        return {} if added.any() else None
