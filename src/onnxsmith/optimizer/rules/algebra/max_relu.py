"""The larger of a value and 0 is `Relu`."""

from __future__ import annotations

import math

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._clamps import clamp
from onnxsmith.optimizer.rules._patterns import FLOATS, two_ways
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class MaxRelu(Rule):
    """Max(x, 0) is Relu(x), which needs no constant. NaN stays NaN. The result may be -0.0 instead of 0.0, which is
    equal in value.

    Refused:
    1. The dtype is not known to be float16, float or double: Relu of integers exists only since opset 14.

    Zeros that would change the shape, or that are not a constant with one element, are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) <float zero = {0}> {
            y = Max(x, zero)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = Relu(x)
        }
    """

    anchor = ("Max",)
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = clamp(node)
        if found is None and len(node.inputs) == 2:
            return _of_integers(node)
        if found is None or (found.low, found.high) != (0, math.inf):
            return None
        return Match(node, (node,), {"source": found.source})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Relu", [match.found["source"]])


def _of_integers(node: ir.Node) -> NoMatch | None:
    for value, other in two_ways(node):
        array = facts.constant(other)
        if array is not None and array.size == 1 and array.item() == 0 and value.dtype not in FLOATS:
            return NoMatch("the dtype is not known to be float16, float or double", value)
    return None
