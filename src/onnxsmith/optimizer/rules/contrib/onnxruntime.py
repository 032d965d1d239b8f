"""Makes operators of onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _activations, _quantized_products
from onnxsmith.optimizer.rules._patterns import integer, maker, only_reader, read_elsewhere, times_number, two_ways
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_DOMAIN = "com.microsoft"


def _trimmed(operands: Sequence[ir.Value | None]) -> list[ir.Value | None]:
    """Returns the operands without omitted ones at the end."""
    found = list(operands)
    while found and found[-1] is None:
        found.pop()
    return found


def _without_kernel(value: ir.Value, operator: str) -> NoMatch | None:
    """Returns a refusal unless the value is known to be float, the only dtype for which onnxruntime has these CPU
    kernels."""
    if value.dtype is ir.DataType.FLOAT:
        return None
    return NoMatch(f"onnxruntime has {operator} on a CPU only for float", value)


class BiasGelu(Rule):
    """Gelu(x + b), with one constant number for each element of the last axis, is com.microsoft.BiasGelu(x, b); with
    the approximation by tanh it is com.microsoft.FastGelu(x, b). With its default optimisations, onnxruntime makes both
    itself when it loads a file.

    Refused:
    1. The sum has other readers, or is a graph output.
    2. The dtype is not known to be float.

    A summand that is not one row as long as the last axis is no match.

    Before:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N,2] x) => (float[N,2] y) <float[2] b = {1, -1}> {
            a = Add(x, b)
            y = Gelu(a)
        }

    After:
        <ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>
        g (float[N,2] x) => (float[N,2] y) <float[2] b = {1, -1}> {
            y = com.microsoft.BiasGelu(x, b)
        }
    """

    anchor = ("Gelu",)
    exactness = Exactness.REASSOCIATES
    domain = _DOMAIN

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        added = maker(node.inputs[0], node, "Add")
        for source, bias in two_ways(added) if added is not None else ():
            row, dims = facts.dims(bias), facts.dims(source)
            if not facts.is_constant(bias) or row is None or not dims or len(row) != 1 or row[0] != dims[-1]:
                continue
            assert added is not None
            refusal = _without_kernel(source, "BiasGelu") or read_elsewhere((node, added))
            return refusal or Match(node, (node, added), {"operands": [source, bias]})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        approximate = match.node.attributes.get("approximate")
        is_tanh = approximate is not None and approximate.as_string() == "tanh"
        return tape.op("FastGelu" if is_tanh else "BiasGelu", match.found["operands"], domain=_DOMAIN)


class QuickGelu(Rule):
    """x * Sigmoid(a·x) is com.microsoft.QuickGelu with alpha = a. With its default optimisations, onnxruntime makes
    this operator itself when it loads a file, but not from Swish, for which it has no kernel.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The dtype is not known to be float.

    Before:
        <ir_version: 10, opset_import: ["": 24]>
        g (float[N] x) => (float[N] y) {
            a = Sigmoid(x)
            y = Mul(x, a)
        }

    After:
        <ir_version: 10, opset_import: ["": 24, "com.microsoft": 1]>
        g (float[N] x) => (float[N] y) {
            y = com.microsoft.QuickGelu <alpha = 1.0> (x)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES
    domain = _DOMAIN

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _activations.swish(node)
        if found is None:
            return None
        refusal = _without_kernel(found.source, "QuickGelu") or read_elsewhere(found.nodes)
        return refusal or Match(node, found.nodes, {"source": found.source, "alpha": found.argument[1, 0]})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        attributes = {"alpha": float(match.found["alpha"])}
        return tape.op("QuickGelu", [match.found["source"]], attributes, domain=_DOMAIN)


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
    domain = _DOMAIN

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        product, alpha = _scaled_product(node)
        if product is None or (product is node and _is_scaled_later(node)):
            return None
        sides = [_untransposed(value, product) for value in product.inputs]
        flags = [transpose is not None for _, transpose in sides]
        if not any(flags) and alpha == 1:
            return None
        source = sides[0][0]
        refusal = _without_kernel(source, "FusedMatMul") or read_elsewhere(list(dict.fromkeys((node, product))))
        nodes = dict.fromkeys((node, product, *(transpose for _, transpose in sides if transpose is not None)))
        return refusal or Match(
            node, tuple(nodes), {"operands": [one for one, _ in sides], "flags": flags, "alpha": alpha}
        )

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        left, right = (int(flag) for flag in match.found["flags"])
        attributes = {"transA": left, "transB": right, "alpha": match.found["alpha"]}
        return tape.op("FusedMatMul", match.found["operands"], attributes, domain=_DOMAIN)


def _scaled_product(node: ir.Node) -> tuple[ir.Node | None, float]:
    """Returns the MatMul, and the number that its result is multiplied by."""
    if node.op_type == "MatMul":
        return node, 1.0
    for one, number in times_number(node):
        product = maker(one, node, "MatMul")
        if product is not None and number:
            return product, float(number) if node.op_type == "Mul" else 1 / float(number)
    return None, 1.0


def _is_scaled_later(node: ir.Node) -> bool:
    """Whether a factor after the product belongs to it. Then the match starts at that factor."""
    reader = only_reader(node)
    return reader is not None and reader.op_type in ("Mul", "Div") and _scaled_product(reader)[0] is node


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
    domain = _DOMAIN

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
        return tape.op("DynamicQuantizeMatMul", _trimmed(operands), domain=_DOMAIN)


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
    domain = _DOMAIN

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
        return tape.op("MatMulIntegerToFloat", _trimmed(operands), domain=_DOMAIN)


_SKIPPING = {"LayerNormalization": "SkipLayerNormalization", "RMSNormalization": "SkipSimplifiedLayerNormalization"}


class SkipLayerNorm(Rule):
    """LayerNormalization(x + y) is com.microsoft.SkipLayerNormalization(x, y), which returns the sum as well, and
    RMSNormalization(x + y) is com.microsoft.SkipSimplifiedLayerNormalization(x, y). Measured slower than the two
    operators on a CPU (onnxruntime 1.32: 5 to 7 times, and 2 times), so it runs only if `--only` names it.

    Refused:
    1. The dtype is not known to be float.
    2. The operands of the sum do not provably have the same shape, with three axes.

    A normalisation over other axes than the last, or whose mean or deviation is read, is no match.

    Before:
        <ir_version: 10, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,3,2] y) <float[2] s = {2, 3}, float[2] b = {1, -1}> {
            z = Tanh(x)
            a = Add(x, z)
            n = LayerNormalization <axis = -1, epsilon = 0.00001> (a, s, b)
            y = Add(n, a)
        }

    After:
        <ir_version: 10, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[N,3,2] x) => (float[N,3,2] y) <float[2] s = {2, 3}, float[2] b = {1, -1}> {
            z = Tanh(x)
            n, m, d, a = com.microsoft.SkipLayerNormalization <epsilon = 0.00001> (x, z, s, b)
            y = Add(n, a)
        }
    """

    anchor = tuple(_SKIPPING)
    exactness = Exactness.REASSOCIATES
    domain = _DOMAIN
    slower = "5 to 7 times the time of Add and LayerNormalization, twice that of Add and RMSNormalization"

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        added = maker(node.inputs[0], node, "Add")
        if added is None or any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
            return None
        one, two = added.inputs
        dims = facts.dims(added.outputs[0])
        if one is None or two is None or dims is None or integer(node, "axis", -1) not in (-1, len(dims) - 1):
            return None
        if len(dims) != 3 or not facts.same(facts.dims(one), facts.dims(two)):
            return NoMatch("the operands of the sum are not provably of one shape with three axes", added)
        return _without_kernel(one, "SkipLayerNormalization") or Match(node, (node, added), {"sum": added})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> dict[ir.Value, ir.Value]:
        added: ir.Node = match.found["sum"]
        operands = [*added.inputs, *match.node.inputs[1:]]
        epsilon = match.node.attributes.get("epsilon")
        attributes = {"epsilon": epsilon.as_float() if epsilon is not None else 1e-5}
        made = tape.op_multi_out(_SKIPPING[match.node.op_type], operands, attributes, num_outputs=4, domain=_DOMAIN)
        return {match.node.outputs[0]: made[0], added.outputs[0]: made[3]}
