"""A `Gather` of one element with an `Unsqueeze` of its axis is a `Slice`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._slices import TO_THE_END
from onnxsmith.optimizer.rules.base import Exactness

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match


class GatherUnsqueeze(PatternRule):
    """Unsqueeze(Gather(x, i)) along the axis that the Gather removed is the Slice of x from i to i + 1, if i is a
    constant. Several such Slices may be the parts of a Split, which algebra/slices-split makes.

    Refused:
    1. The gathered value has other readers, or is a graph output.
    2. The model's opset is below 10, which introduced Slice with bounds as inputs.

    Indices of rank 1 or more are no match: the Gather keeps an axis then.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,N] x) => (float[1,N] y) <int64 i = {-2}, int64[1] axes = {0}> {
            a = Gather(x, i)
            y = Unsqueeze(a, axes)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,N] x) => (float[1,N] y) <int64[1] start = {0}, int64[1] end = {1}, int64[1] axes = {0}> {
            y = Slice(x, start, end, axes)
        }
    """

    anchor = ("Unsqueeze",)
    exactness = Exactness.BITWISE
    pattern = "a = Gather <axis = ?axis> (x, c_i)  y = Unsqueeze(a, ...)"
    replacement = "Slice(x, start, end, axes)"
    since = 10
    form = "its bounds as inputs"
    sole_reader = True

    def check(self, found: Match) -> Answer:
        dims, axis, index = facts.dims(found["x"]), found.integer("axis"), found.constant("c_i")
        if not dims or axis is None or index.ndim or _views.axes(found.node, len(dims)) != (axis % len(dims),):
            return None
        size, start = dims[axis], int(index)
        if isinstance(size, int) and start < 0:
            start += size
        bounds = {"start": start, "end": TO_THE_END if start == -1 else start + 1, "axes": axis % len(dims)}
        return {name: np.array([number], np.int64) for name, number in bounds.items()}
