"""`MatMul` of two matrices and `Add` are one `Gemm`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.shapes import facts
from onnxsmith.rules._patterns import FLOATS, maker, read_elsewhere, two_ways
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class MatmulAddGemm(Rule):
    """MatMul(x, W) + c with a matrix x and constant W and c is Gemm(x, W, c). For tensors of more dimensions it would
    take a Reshape before and after, which is more nodes, so this is for matrices only.

    Refused:
    1. The product has other readers, or is a graph output.
    2. x is not provably a matrix, or W is none.
    3. The dtype is not known to be float16, float or double.
    4. The constant does not broadcast to one row: it has more than one, raises the rank, or is wider than W.

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

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if facts.opset(node) < 7:
            return None
        for source, other in two_ways(node):
            product, added = maker(source, node, "MatMul"), facts.constant(other)
            if product is None or added is None:
                continue
            weight = facts.constant(product.inputs[1])
            if weight is None:
                continue
            rows = facts.dims(product.inputs[0])
            if rows is None or len(rows) != 2 or weight.ndim != 2 or not weight.size:
                return NoMatch("it is not provably a product of two matrices", product.name or "")
            if product.inputs[1] is None or product.inputs[1].dtype not in FLOATS:
                return NoMatch("the dtype is none that Gemm is sure to have", product.name or "")
            if (
                added.ndim > 2
                or added.shape[:-1] not in ((), (1,))
                or added.shape[-1:] not in ((), (1,), weight.shape[1:])
            ):
                return NoMatch("the constant is not one row as wide as the product", other.name or "")
            refusal = read_elsewhere((node, product))
            return refusal or Match(node, (node, product), {"inputs": [*product.inputs, other]})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Gemm", match.found["inputs"])
