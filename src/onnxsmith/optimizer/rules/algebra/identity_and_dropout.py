"""Removes `Identity` and `Dropout`, which pass their input on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.value_replacement import can_be_output
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import integer
from onnxsmith.optimizer.rules.base import Exactness, NoMatch

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found


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

    def check(self, found: Found) -> Answer:
        result = found["y"]
        if result.is_graph_output() and not can_be_output(found["x"], found.graph):
            return NoMatch("the result is a graph output, which needs a value of its own", result)
        return {}


class DropoutInference(PatternRule):
    """Dropout drops nothing in inference. Its mask is then all true, and usually has no readers.

    Refused:
    1. `training_mode` (an input since opset 12) is true, or not a constant; before opset 7, `is_test` is not set.
    2. The mask is read or is a graph output.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            a = Dropout(x)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = Relu(x)
        }
    """

    anchor = ("Dropout",)
    exactness = Exactness.BITWISE
    pattern = "Dropout(x, ...)"
    replacement = "x"

    def check(self, found: Found) -> Answer:
        node = found.node
        if len(node.inputs) > 2 and node.inputs[2] is not None:
            training = facts.constant(node.inputs[2])
            if training is None or bool(training):
                return NoMatch("the Dropout may run in training mode")
        if facts.opset(node) < 7 and not integer(node, "is_test", 0):
            return NoMatch("the Dropout runs in training mode")
        if any(mask.uses() or mask.is_graph_output() for mask in node.outputs[1:]):
            return NoMatch("its mask is read", node.outputs[1])
        return {}
