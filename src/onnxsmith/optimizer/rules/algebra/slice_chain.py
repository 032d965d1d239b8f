"""A `Slice` of a `Slice`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onnxsmith.optimizer.rules import _slices
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules.base import Exactness, NoMatch

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match


class SliceChain(PatternRule):
    """Slices of different axes in a row are one Slice. So are Slices of the same axis in steps of 1 with bounds that do
    not count from the end: x[a:b][c:d] is x[a+c:min(b, a+d)]. If several Slices read one Slice, each reads that Slice's
    data instead.

    Refused:
    1. Both cut the same axis, and one has other steps than 1 or counts from the end of a dimension of unknown size.
    2. The first has readers that are not Slices: it would stay.

    No match: Slices whose bounds are not known numbers; three or more Slices that cut a Slice into parts, because they
    become a Split; opsets below 10, where bounds were attributes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,8,6] x) => (float[N,3,3] y)
        <int64[1] a = {2}, int64[1] b = {7}, int64[2] c = {0, 1}, int64[2] d = {6, 4},
         int64[1] one = {1}, int64[2] both = {2, 1}, int64[2] steps = {2, 1}> {
            s = Slice(x, a, b, one)
            y = Slice(s, c, d, both, steps)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,8,6] x) => (float[N,3,3] y)
        <int64[2] c = {3, 0}, int64[2] d = {6, 6}, int64[2] both = {1, 2}, int64[2] steps = {1, 2}> {
            y = Slice(x, c, d, both, steps)
        }
    """

    anchor = ("Slice",)
    exactness = Exactness.BITWISE
    pattern = "a = Slice(x, ...)  y = Slice(a, ...)"
    replacement = "Slice(x, starts, ends, axes, steps)"

    def check(self, found: Match) -> Answer:
        outer, inner = _slices.ranges(found.node), _slices.ranges(found.made("a"))
        if outer is None or inner is None:
            return None
        middle = found["a"]
        readers = middle.consumers()
        if middle.is_graph_output() or any(reader.op_type != "Slice" or reader.domain for reader in readers):
            return NoMatch("the first is read by others too", middle)
        if len(readers) > 2 and _slices.parts(found.node):
            return None
        both = dict(inner)
        for axis, later in outer.items():
            joined = inner[axis].then(later) if axis in inner else later
            if joined is None:
                return NoMatch("both cut one axis, in a way that takes its size", found.node)
            both[axis] = joined
        written = {name: np.array(numbers, np.int64) for name, numbers in _slices.inputs(both).items()}
        return written if (written["steps"] != 1).any() else {**written, "steps": None}
