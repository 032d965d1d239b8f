"""A value that is quantised for one product is multiplied by `DynamicQuantizeMatMul`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules import _contrib, _quantized_products
from onnxsmith.optimizer.rules._patterns import read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class DynamicQuantizeMatmul(Rule):
    """DynamicQuantizeLinear(x) with a single product of integers as reader, and the scales and the bias of the product,
    is com.microsoft.DynamicQuantizeMatMul(x, B, …), with the same numbers. With its default optimisations, onnxruntime
    makes this operator itself when it loads a file.

    Refused:
    1. An intermediate result has other readers, or is a graph output.

    A quantised input that several products read is left to contrib/matmul-integer-to-float. Matrices that are not
    constant are no match.

    Before:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N,2] x) => (float[N,2] y)
        <uint8[2,2] w = {1, 2, 3, 4}, uint8 z = {2}, float s = {0.5}, float[2] b = {1, -1}> {
            q, qs, qz = DynamicQuantizeLinear(x)
            m = MatMulInteger(q, w, qz, z)
            c = Cast <to = 1> (m)
            t = Mul(qs, s)
            f = Mul(c, t)
            y = Add(f, b)
        }

    After:
        <ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>
        g (float[N,2] x) => (float[N,2] y)
        <uint8[2,2] w = {1, 2, 3, 4}, uint8 z = {2}, float s = {0.5}, float[2] b = {1, -1}> {
            y = com.microsoft.DynamicQuantizeMatMul(x, w, s, z, b)
        }
    """

    anchor = ("Add", "Mul")
    exactness = Exactness.VALUE
    domain = _contrib.DOMAIN

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _quantized_products.scaled(node)
        quantizer = _quantized_products.own_quantizer(found) if found is not None else None
        if found is None or quantizer is None or _quantized_products.is_followed_by_bias(node):
            return None
        nodes = (*found.nodes, quantizer)
        return read_elsewhere(nodes) or Match(node, nodes, {"scaled": found, "source": quantizer.inputs[0]})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        found: _quantized_products.Scaled = match.found["scaled"]
        operands = [match.found["source"], found.operand(1), found.b_scale, found.operand(3), found.bias]
        return tape.op("DynamicQuantizeMatMul", _contrib.given(operands), domain=_contrib.DOMAIN)
