"""`Concat` of one value."""

from __future__ import annotations

from onnxsmith.optimizer.rules._pattern_rule import PatternRule
from onnxsmith.optimizer.rules.base import Exactness


class ConcatSingle(PatternRule):
    """A Concat with one input gives that input.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            a = Concat <axis = 0> (x)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = Relu(x)
        }
    """

    anchor = ("Concat",)
    exactness = Exactness.BITWISE
    pattern = "Concat(x)"
    replacement = "x"
