"""`Identity` gives what it gets."""

from __future__ import annotations

import onnx_ir as ir

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
        source = node.inputs[0]
        if source is None:
            return None
        if node.outputs[0].is_graph_output():
            producer = source.producer()
            if producer is None or producer.graph is not node.graph or source.is_graph_output():
                return NoMatch(
                    "the result is a graph output, which needs a value of its own", node.outputs[0].name or ""
                )
        return Match(node, (node,))

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source = match.node.inputs[0]
        assert source is not None
        return source
