"""`MatMul` with a `Transpose` before it and a factor after it is `FusedMatMul`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _contrib
from onnxsmith.optimizer.rules._patterns import fits, maker, read_elsewhere, two_ways
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class FusedMatmul(Rule):
    """A product whose left or right operand is transposed in its last two axes, and which is multiplied by a constant
    number afterwards, is com.microsoft.FusedMatMul with transA, transB and alpha. With its default optimisations,
    onnxruntime makes this operator itself when it loads a file.

    Refused:
    1. The product has other readers, or is a graph output.
    2. The dtype is not known to be float.

    A product without a factor and without transposed operands is no match.

    Before:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N,2,4] x, float[N,3,4] w) => (float[N,2,3] y) <float half = {0.5}> {
            t = Transpose <perm = [0, 2, 1]> (w)
            p = MatMul(x, t)
            y = Mul(p, half)
        }

    After:
        <ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>
        g (float[N,2,4] x, float[N,3,4] w) => (float[N,2,3] y) {
            y = com.microsoft.FusedMatMul <transA = 0, transB = 1, alpha = 0.5> (x, w)
        }
    """

    anchor = ("MatMul", "Mul", "Div")
    exactness = Exactness.REASSOCIATES
    domain = _contrib.DOMAIN

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        product, alpha = _scaled(node)
        if product is None or (product is node and _is_scaled_later(node)):
            return None
        sides = [_untransposed(value, product) for value in product.inputs]
        flags = [transpose is not None for _, transpose in sides]
        if not any(flags) and alpha == 1:
            return None
        source = sides[0][0]
        refusal = _contrib.without_kernel(source, "FusedMatMul") or read_elsewhere(list(dict.fromkeys((node, product))))
        nodes = dict.fromkeys((node, product, *(transpose for _, transpose in sides if transpose is not None)))
        return refusal or Match(
            node, tuple(nodes), {"operands": [one for one, _ in sides], "flags": flags, "alpha": alpha}
        )

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        left, right = (int(flag) for flag in match.found["flags"])
        attributes = {"transA": left, "transB": right, "alpha": match.found["alpha"]}
        return tape.op("FusedMatMul", match.found["operands"], attributes, domain=_contrib.DOMAIN)


def _scaled(node: ir.Node) -> tuple[ir.Node | None, float]:
    """Returns the MatMul, and the number that its result is multiplied by."""
    if node.op_type == "MatMul":
        return node, 1.0
    for one, other in two_ways(node)[: 2 if node.op_type == "Mul" else 1]:
        number, product = facts.constant(other), maker(one, node, "MatMul")
        if product is None or number is None or number.size != 1 or not fits(number.shape, one) or not number.item():
            continue
        return product, float(number.item()) if node.op_type == "Mul" else 1 / float(number.item())
    return None, 1.0


def _is_scaled_later(node: ir.Node) -> bool:
    """Whether a factor after the product belongs to it. Then the match starts at that factor."""
    readers = list(node.outputs[0].consumers())
    is_alone = len(readers) == 1 and not node.outputs[0].is_graph_output()
    return (
        is_alone and readers[0].op_type in ("Mul", "Div") and not readers[0].domain and _scaled(readers[0])[0] is node
    )


def _untransposed(value: ir.Value | None, product: ir.Node) -> tuple[ir.Value, ir.Node | None]:
    """Returns the value before a Transpose of the last two axes, and the Transpose. Returns other operands as they are,
    and None."""
    assert value is not None
    transpose = maker(value, product, "Transpose")
    order = perm(transpose) if transpose is not None else None
    source = transpose.inputs[0] if transpose is not None else None
    if order is None or source is None or len(order) < 2:
        return value, None
    kept = list(range(len(order) - 2))
    return (source, transpose) if order == [*kept, len(order) - 1, len(order) - 2] else (value, None)
