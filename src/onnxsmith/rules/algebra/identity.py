"""`Identity` is its input."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.graph.value_replacement import can_be_output
from onnxsmith.rules._patterns import passed_on, passes_on
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class Identity(Rule):
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

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        source, result = node.inputs[0], node.outputs[0]
        if source is not None and result.is_graph_output() and not can_be_output(source, node.graph):
            return NoMatch("the result is a graph output, which needs a value of its own", result.name or "")
        return passes_on(node)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return passed_on(match)
