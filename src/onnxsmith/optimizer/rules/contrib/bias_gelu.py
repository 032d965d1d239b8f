"""`Gelu` of a sum with one row is `BiasGelu` or `FastGelu`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _contrib
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere, two_ways
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


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
    domain = _contrib.DOMAIN

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        added = maker(node.inputs[0], node, "Add")
        for source, bias in two_ways(added) if added is not None else ():
            row, dims = facts.dims(bias), facts.dims(source)
            if not facts.is_constant(bias) or row is None or not dims or len(row) != 1 or row[0] != dims[-1]:
                continue
            assert added is not None
            refusal = _contrib.without_kernel(source, "BiasGelu") or read_elsewhere((node, added))
            return refusal or Match(node, (node, added), {"operands": [source, bias]})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        approximate = match.node.attributes.get("approximate")
        is_tanh = approximate is not None and approximate.as_string() == "tanh"
        return tape.op("FastGelu" if is_tanh else "BiasGelu", match.found["operands"], domain=_contrib.DOMAIN)
