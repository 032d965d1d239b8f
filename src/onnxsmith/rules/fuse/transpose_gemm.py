"""A product with a transposed weight."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.shapes import facts
from onnxsmith.rules._patterns import FLOATS, maker
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class TransposeGemm(Rule):
    """MatMul(x, Transpose(w)) of two matrices is Gemm with `transB`, which reads w as it is: a large weight that lies
    in a file of its own need not be written anew.

    Refused:
    1. The dtype is not known to be floating point: Gemm takes others on few runtimes.

    Operands that are not known to be matrices, and a Transpose of something that changes, are no match.

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

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        transpose = maker(node.inputs[1], node, "Transpose")
        weight = transpose.inputs[0] if transpose is not None else None
        data = facts.dims(node.inputs[0])
        if transpose is None or weight is None or not weight.is_initializer() or data is None or len(data) != 2:
            return None
        if weight.shape is None or len(weight.shape) != 2 or facts.opset(node) < 11:
            return None
        given = transpose.attributes.get("perm")
        if given is not None and (given.is_ref() or list(given.as_ints()) != [1, 0]):
            return None
        if weight.dtype not in FLOATS:
            return NoMatch("the dtype is not known to be floating point", weight.name or "")
        return Match(node, (node, transpose), {"weight": weight})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Gemm", [match.node.inputs[0], match.found["weight"]], {"transB": 1})
