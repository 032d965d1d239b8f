"""A bound that a value never reaches."""

from __future__ import annotations

import math

import onnx_ir as ir

from onnxsmith.rules._clamps import CLAMPS, LEFT_OUT, clamp
from onnxsmith.rules._patterns import maker
from onnxsmith.rules._ranges import not_negative
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class ClampInside(Rule):
    """A Relu, a Clip, or a Max or Min with a number, gives what it gets where that is within the bounds already: the
    result of another with bounds as narrow, or, for a lower bound of 0 or less and no upper one, of Sigmoid, Softmax,
    Exp, Sqrt, Abs and the like, which are not negative. A Clip from -∞ to ∞ gives what it gets.

    A Clip that leaves a bound out makes the largest number of an infinity in some runtimes, so that it stays where
    its input may be infinite. Integers are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) <float low = {0}, float high = {6}> {
            a = Clip(x, low, high)
            b = Relu(a)
            y = Neg(b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) <float low = {0}, float high = {6}> {
            a = Clip(x, low, high)
            y = Neg(a)
        }
    """

    anchor = CLAMPS
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = clamp(node)
        if found is None:
            return None
        before = maker(found.source, node, *CLAMPS)
        inner = clamp(before) if before is not None else None
        low, high = (inner.low, inner.high) if inner is not None else (-math.inf, math.inf)
        if low < 0 and not_negative(found.source):
            low = 0.0
        if found.low > low or found.high < high or (found.high == LEFT_OUT and high > LEFT_OUT):
            return None
        return Match(node, (node,), {"source": found.source})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source: ir.Value = match.found["source"]
        return source
