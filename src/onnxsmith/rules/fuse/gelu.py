"""The exact `Gelu`, written out with `Erf`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.rules._patterns import FLOATS, is_number, maker, read_elsewhere, too_old, two_ways
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class Gelu(Rule):
    """x/2 · (1 + erf(x/√2)) is Gelu(x) (D. Hendrycks and K. Gimpel, 2016), in whatever order the three factors are
    multiplied, and with √2 as a divisor or its inverse as a factor.

    Refused:
    1. The model's opset is below 20, which brought Gelu.
    2. A result in the middle is read by others too, or is a graph output.
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
            y = Gelu(x)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for factors, product in _three_factors(node):
            for index, factor in enumerate(factors):
                found = _one_plus_erf(factor, node)
                if found is None:
                    continue
                source, nodes = found
                rest = [other for place, other in enumerate(factors) if place != index]
                if not any(x is source and is_number(half, 0.5, x) for x, half in (rest, rest[::-1])):
                    continue
                if source.dtype not in FLOATS:
                    return NoMatch("the dtype is not known to be floating point", source.name or "")
                every = (node, product, *nodes)
                refusal = too_old(node, "Gelu", 20) or read_elsewhere(every)
                return refusal or Match(node, every, {"source": source})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Gelu", [match.found["source"]])


def _three_factors(node: ir.Node) -> Iterator[tuple[tuple[ir.Value, ...], ir.Node]]:
    """The factors of a product of a product, and the node of the inner one."""
    for one, other in two_ways(node):
        inner = maker(one, node, "Mul")
        if inner is not None:
            yield (*(value for value in inner.inputs if value is not None), other), inner


def _one_plus_erf(value: ir.Value, reader: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """x and the nodes, where the value is 1 + erf(x/√2)."""
    total = maker(value, reader, "Add")
    for erf_value, one in two_ways(total) if total is not None else ():
        erf = maker(erf_value, reader, "Erf")
        scaled = maker(erf.inputs[0], reader, "Div", "Mul") if erf is not None else None
        if total is None or erf is None or scaled is None or not is_number(one, 1, erf_value):
            continue
        orders, wanted = two_ways(scaled), 1 / math.sqrt(2)
        if scaled.op_type == "Div":
            orders, wanted = orders[:1], math.sqrt(2)
        for source, constant in orders:
            if is_number(constant, wanted, source):
                return source, (total, erf, scaled)
    return None
