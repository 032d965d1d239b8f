"""`Identity` is its input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxsmith.graph.structure.value_replacement import can_be_output
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules.base import Exactness, NoMatch

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match


class Identity(PatternRule):
    """An Identity passes its input on, so its readers can read that input.

    Refused:
    1. The result is a graph output and the input is a graph input, an initializer, a value from an outer graph, or
       another output: each output needs a value of its own, made in its own graph.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            a = Identity(x)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = Relu(x)
        }
    """

    anchor = ("Identity",)
    exactness = Exactness.BITWISE
    pattern = "y = Identity(x)"
    replacement = "x"

    def check(self, found: Match) -> Answer:
        result = found["y"]
        if result.is_graph_output() and not can_be_output(found["x"], found.graph):
            return NoMatch("the result is a graph output, which needs a value of its own", result)
        return {}
