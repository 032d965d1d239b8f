"""Two bounds in a row: `Clip`, `Relu`, and `Max` and `Min` with a number."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._clamps import CLAMPS, Clamp, can_write, clamp, write
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ClampChain(Rule):
    """Two operators in a row that limit a value to bounds become one operator: Min(Max(x, a), b) is Clip(x, a, b), a
    Clip of a Clip has the tighter bounds, and Relu is a Clip from 0 without an upper bound. NaN stays NaN. A bound of 0
    may turn 0.0 into -0.0 or the reverse, which is equal in value.

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
        return write(tape, match.found["clamp"], facts.opset(match.node))
