"""A `Slice` that takes everything."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import passed_on, passes_on
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_TO_THE_END = 2**31 - 1
"""INT_MAX, which the specification recommends for the end of a dimension of unknown size."""


class SliceNoop(Rule):
    """A Slice from 0 in steps of 1 changes nothing if its ends provably reach the ends of the data, for every size. An
    end reaches it if it is INT_MAX or more, a number not below the dimension, or computed as that very dimension.

    The rule does not match before opset 10, where starts and ends were attributes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y)
        <int64[2] starts = {0, 0}, int64[2] ends = {9223372036854775807, 4}, int64[2] axes = {0, -1}> {
            a = Slice(x, starts, ends, axes)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) {
            y = Relu(x)
        }
    """

    anchor = ("Slice",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if len(node.inputs) < 3:
            return None
        data, starts = facts.dims(node.inputs[0]), facts.integers(node.inputs[1])
        ends = facts.integers(node.inputs[2])
        if data is None or starts is None or ends is None or any(start != 0 for start in starts):
            return None
        axes = _optional(node, 3, tuple(range(len(starts))))
        steps = _optional(node, 4, (1,) * len(starts))
        if axes is None or steps is None or any(step != 1 for step in steps) or len(axes) != len(ends):
            return None
        for axis, end in zip(axes, ends, strict=True):
            if not isinstance(axis, int) or not -len(data) <= axis < len(data) or not _takes_all(end, data[axis]):
                return None
        return passes_on(node)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return passed_on(match)


def _optional(node: ir.Node, index: int, default: tuple[int, ...]) -> tuple[facts.Element, ...] | None:
    if len(node.inputs) <= index or node.inputs[index] is None:
        return default
    return facts.integers(node.inputs[index])


def _takes_all(end: facts.Element, dim: facts.Element | None) -> bool:
    if isinstance(end, int) and end >= (dim if isinstance(dim, int) else _TO_THE_END):
        return True
    return dim is not None and end == dim
