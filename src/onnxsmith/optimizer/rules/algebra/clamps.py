"""Joins and removes operators that limit a value to bounds: `Clip`, `Relu`, and `Max` and `Min` with a number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import FLOATS, maker, read_elsewhere
from onnxsmith.optimizer.rules._ranges import CLAMPS, LEFT_OUT, Clamp, can_write, clamp, not_negative, write_clamp
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found


class ClampChain(Rule):
    """Two operators in a row that limit a value to bounds become one operator: Min(Max(x, a), b) is Clip(x, a, b), a
    Clip of a Clip has the tighter bounds, and Relu is a Clip from 0 without an upper bound. NaN stays NaN. A bound of 0
    may turn 0.0 into -0.0 or the reverse, which is equal in value. tf2onnx writes `tf.clip_by_value` as Max and Min.

    Refused:
    1. The intermediate value has other readers, or is a graph output.
    2. The model's opset has no Clip for the dtype: below 12 for double and float16.

    No match: bounds that are not constants, are NaN, or would change the shape; a lower bound above the upper bound;
    integers, because shapes are computed with them.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) <float low = {-1}, float high = {6}> {
            a = Max(low, x)
            b = Min(a, high)
            y = Relu(b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) <float low = {0}, float high = {6}> {
            y = Clip(x, low, high)
        }
    """

    anchor = CLAMPS
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        outer = clamp(node)
        first = maker(outer.source, node, *CLAMPS) if outer is not None else None
        inner = clamp(first) if first is not None else None
        if outer is None or first is None or inner is None:
            return None
        both = Clamp(inner.source, outer.of(inner.low), outer.of(inner.high))
        if not can_write(node, both):
            return NoMatch(f"opset {facts.opset(node)} has no Clip for the dtype, which came with 12")
        return read_elsewhere((node, first)) or Match(node, (node, first), {"clamp": both})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return write_clamp(tape, match.found["clamp"], facts.opset(match.node))


class ClampInside(PatternRule):
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
    pattern = "either(Clip(x, ...), Relu(x), Max(x, c_bound), Min(x, c_bound))"
    replacement = "x"

    def check(self, found: Found) -> Answer:
        own = clamp(found.node)
        if own is None or own.source is not found["x"]:
            return None
        before = maker(own.source, found.node, *CLAMPS)
        inner = clamp(before) if before is not None else None
        low, high = (inner.low, inner.high) if inner is not None else (-math.inf, math.inf)
        if low < 0 and not_negative(own.source):
            low = 0.0
        return {} if own.low <= low and own.high >= high and not (own.high == LEFT_OUT < high) else None


class MaxRelu(PatternRule):
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
    pattern = "Max(x, c_zero)"
    replacement = "Relu(x)"

    def check(self, found: Found) -> Answer:
        own, zero = clamp(found.node), found.constant("c_zero")
        if own is None and zero.size == 1 and zero.item() == 0 and found["x"].dtype not in FLOATS:
            return NoMatch("the dtype is not known to be float16, float or double", found["x"])
        is_relu = own is not None and own.source is found["x"] and (own.low, own.high) == (0, math.inf)
        return {} if is_relu else None
