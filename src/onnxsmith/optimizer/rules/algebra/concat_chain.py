"""A `Concat` of a `Concat`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ConcatChain(Rule):
    """Concat(Concat(a, b), c) along one axis is Concat(a, b, c).

    Refused:
    1. The first Concat has other readers, or is a graph output: its inputs would be copied twice.
    2. The second Concat reads the first several times, and would have more inputs than both together. In a chain of
       such Concats the number of inputs would double each time.

    No match: different axes; an axis that counts from the end of a value of unknown rank.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1] x, float[N,2] z) => (float[N,6] y) {
            a = Concat <axis = 1> (x, z)
            y = Concat <axis = -1> (z, a, x)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1] x, float[N,2] z) => (float[N,6] y) {
            y = Concat <axis = -1> (z, x, z, x)
        }
    """

    anchor = ("Concat",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        inputs: list[ir.Value | None] = []
        inner: list[ir.Node] = []
        refusal = None
        for value in node.inputs:
            made = maker(value, node, "Concat")
            if made is None or not _same_axis(made, node) or value is None:
                inputs.append(value)
            elif value.is_graph_output() or list(value.consumers()) != [node]:
                refusal = NoMatch("what was concatenated is used elsewhere too", value)
                inputs.append(value)
            else:
                inputs.extend(made.inputs)
                inner.append(made)
        if not inner:
            return refusal
        if len(inputs) > len(node.inputs) + sum(len(made.inputs) for made in set(inner)):
            return NoMatch("the same parts would be written several times")
        return Match(node, (node, *dict.fromkeys(inner)), {"inputs": inputs})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Concat", match.found["inputs"], dict(match.node.attributes))


def _same_axis(one: ir.Node, other: ir.Node) -> bool:
    axes = [integer(node, "axis", 1) for node in (one, other)]
    if axes[0] is None or axes[1] is None:
        return False
    if axes[0] == axes[1]:
        return True
    dims = facts.dims(one.outputs[0])
    return dims is not None and len(dims) > 0 and (axes[0] - axes[1]) % len(dims) == 0
