"""A `Gather` with one index from a transposed tensor reads the tensor before the transpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, NoMatch

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match


class TransposeGather(PatternRule):
    """A Gather with one index removes an axis. If the other axes are then in their old order, the Gather can read the
    data before the Transpose: the last step of a sequence is the same, whether batch or time comes first.

    Refused:
    1. The other axes change places: a Transpose would still be needed, after the Gather.

    An index of rank 1 or more is no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[T,N,4] x) => (float[N,4] y) <int64 last = {-1}> {
            t = Transpose <perm = [1, 0, 2]> (x)
            y = Gather <axis = 1> (t, last)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[T,N,4] x) => (float[N,4] y) <int64 last = {-1}> {
            y = Gather <axis = 0> (x, last)
        }
    """

    anchor = ("Gather",)
    exactness = Exactness.BITWISE
    pattern = "t = Transpose(x)  y = Gather <axis = ?axis> (t, i)"
    replacement = "Gather <axis = ?taken> (x, i)"

    def check(self, found: Match) -> Answer:
        order, axis = perm(found.made("t")), found.integer("axis")
        if order is None or axis is None or facts.dims(found["i"]) != () or not -len(order) <= axis < len(order):
            return None
        left = [one for one in order if one != order[axis]]
        if left != sorted(left):
            return NoMatch("the axes that are left change places", found.node)
        return {"taken": order[axis]}
