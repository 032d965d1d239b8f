"""A `Reshape` of a reshaped value reads the data before."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ReshapeChain(Rule):
    """Reshape, Flatten, Squeeze and Unsqueeze keep the elements and their order. So a Reshape after such an operator
    can read the operator's data instead, and is redundant if it restores that data's shape. Other readers of the
    intermediate value keep it.

    Refused:
    1. An element of the target is 0, the dimension that it copies is not provably the same before the first operator,
       and no other target gives the result.

    From opset 14 on (`allowzero`), a computed target whose elements are the sizes of the result is kept. Other computed
    targets that no constant can express are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,6] x) => (float[N,24] y) <int64[3] s = {-1, 2, 12}, int64[2] t = {-1, 24}> {
            a = Reshape(x, s)
            y = Reshape(a, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,6] x) => (float[N,24] y) <int64[2] t = {-1, 24}> {
            y = Reshape(x, t)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        middle = node.inputs[0]
        first = maker(middle, node, *_views.VIEWS)
        if first is None or first.inputs[0] is None or len(node.inputs) < 2:
            return None
        target = facts.constant(node.inputs[1])
        allowzero = integer(node, "allowzero", 0)
        before, after = facts.dims(first.inputs[0]), facts.dims(middle)
        found = {"source": first.inputs[0]}
        if target is not None and allowzero is not None:
            elements = enumerate(target.ravel().tolist())
            if all(_views.is_kept(before, after, element, axis, allowzero) for axis, element in elements):
                return Match(node, (node, first), found)
        wanted = facts.dims(node.outputs[0])
        # the second operator restores the shape that the first changed
        if facts.same(before, wanted):
            return Match(node, (node, first), {**found, "target": None})
        written = _views.target(before, wanted)
        if written is not None:
            return Match(node, (node, first), {**found, "target": written})
        if target is None:
            return Match(node, (node, first), {**found, "sizes": True}) if _says(node, wanted) else None
        return NoMatch("the target copies a dimension that only the first result has")

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        if "target" in match.found:
            source: ir.Value = match.found["source"]
            return source if match.found["target"] is None else _views.reshaped(tape, match)
        attributes: dict[str, ir.Attr | int] = dict(match.node.attributes)
        if "sizes" in match.found:
            attributes["allowzero"] = 1
        return tape.op("Reshape", [match.found["source"], match.node.inputs[1]], attributes)


def _says(node: ir.Node, wanted: Sequence[facts.Element | None] | None) -> bool:
    """Whether each element of a computed target is the size of the result, so that with `allowzero` the target means
    the same for any data."""
    elements = facts.integers(node.inputs[1])
    return facts.opset(node) >= 14 and elements is not None and facts.same(elements, wanted)
