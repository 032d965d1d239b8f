"""`Cast` to the input's own dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules.base import Exactness

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match


class CastSame(PatternRule):
    """A Cast to the input's own dtype changes nothing.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            a = Cast <to = 1> (x)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = Relu(x)
        }
    """

    anchor = ("Cast",)
    exactness = Exactness.BITWISE
    pattern = "Cast <to = ?to> (x)"
    replacement = "x"

    def check(self, found: Match) -> Answer:
        dtype = found["x"].dtype
        return {} if dtype is not None and dtype == found.integer("to") else None
