"""A product of integers with its scales and bias is `MatMulIntegerToFloat`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules import _contrib, _quantized_products
from onnxsmith.optimizer.rules._patterns import read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class MatmulIntegerToFloat(Rule):
    """Cast(MatMulInteger(a, B)) · (a_scale · b_scale) + bias is com.microsoft.MatMulIntegerToFloat, with the same
    numbers. The quantised input may have other readers, such as the products of keys and values. With its default
    optimisations, onnxruntime makes this operator itself when it loads a file.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The left operand is int8 and the matrix uint8, for which onnxruntime has no kernel.

    An input that is quantised for this product alone is left to contrib/dynamic-quantize-matmul. Matrices that are not
    constant, or a left operand with one scale for each row, are no match.

    Before:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N,2] x) => (float[N,2] y, uint8[N,2] q)
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
        g (float[N,2] x) => (float[N,2] y, uint8[N,2] q)
        <uint8[2,2] w = {1, 2, 3, 4}, uint8 z = {2}, float s = {0.5}, float[2] b = {1, -1}> {
            q, qs, qz = DynamicQuantizeLinear(x)
            y = com.microsoft.MatMulIntegerToFloat(q, w, qs, s, qz, z, b)
        }
    """

    anchor = ("Add", "Mul")
    exactness = Exactness.VALUE
    domain = _contrib.DOMAIN

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _quantized_products.scaled(node)
        if found is None or _quantized_products.is_followed_by_bias(node):
            return None
        if _quantized_products.own_quantizer(found) is not None:
            return None  # for contrib/dynamic-quantize-matmul
        left, right = found.product.inputs[:2]
        if left is None or right is None or left.dtype is None or right.dtype is None:
            return None
        if left.dtype is ir.DataType.INT8 and right.dtype is ir.DataType.UINT8:
            return NoMatch("onnxruntime has no kernel for int8 with a matrix of uint8", left)
        return read_elsewhere(found.nodes) or Match(node, found.nodes, {"scaled": found})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        found: _quantized_products.Scaled = match.found["scaled"]
        left, right, left_zero, right_zero = (found.operand(index) for index in range(4))
        operands = [left, right, found.a_scale, found.b_scale, left_zero, right_zero, found.bias]
        return tape.op("MatMulIntegerToFloat", _contrib.given(operands), domain=_contrib.DOMAIN)
