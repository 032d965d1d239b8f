"""A bound that a value never exceeds."""

from __future__ import annotations

import math

import onnx_ir as ir

from onnxsmith.optimizer.rules._clamps import CLAMPS, LEFT_OUT, clamp
from onnxsmith.optimizer.rules._patterns import maker
from onnxsmith.optimizer.rules._ranges import not_negative
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ClampInside(Rule):
    """A Relu, a Clip, or a Max or Min with a number changes nothing if its input is already within the bounds, because
    such an operator with the same or narrower bounds made it. For a lower bound of 0 or less without an upper bound,
    the input may also come from Sigmoid, Softmax, Exp, Sqrt, Abs and others that are not negative. A Clip from -∞ to ∞
    changes nothing, either.

    In some runtimes a Clip without one of its bounds turns an infinity into the largest number, so it stays if its
    input may be infinite. Integers are no match.

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
