"""`Unsqueeze`, `Squeeze` and `Flatten` of a reshaped value."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ViewChain(Rule):
    """Unsqueeze, Squeeze, Flatten and Reshape keep the elements and their order, so two in a row become one. If the
    second restores the data's shape, both are removed. Two Unsqueezes become an Unsqueeze with the axes of both, and
    two Squeezes a Squeeze. Other pairs become a Reshape with a constant target. Other readers of the intermediate value
    keep it. If the second is a Reshape, algebra/reshape-chain handles it.

    Refused:
    1. No constant target gives the shape: more than one dimension is neither a number nor the data's dimension at the
       same place.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[1,N,1] y) <int64[1] first = {0}, int64[1] last = {-1}> {
            a = Unsqueeze(x, first)
            y = Unsqueeze(a, last)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[1,N,1] y) <int64[2] axes = {0, 2}> {
            y = Unsqueeze(x, axes)
        }
    """

    anchor = ("Unsqueeze", "Squeeze", "Flatten")
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        first = maker(node.inputs[0], node, *_views.VIEWS)
        source = first.inputs[0] if first is not None else None
        if first is None or source is None:
            return None
        found = {"source": source}
        outer, inner = _axes(node), _axes(first)
        before, after = facts.dims(source), facts.dims(node.outputs[0])
        undone = outer is not None and outer == inner and node.op_type == "Squeeze" and first.op_type == "Unsqueeze"
        if undone or facts.same(before, after):
            return Match(node, (node, first), found)
        if outer is not None and inner is not None and node.op_type == first.op_type:
            merged = _merged(node.op_type, outer, inner)
            return Match(node, (node, first), {**found, "axes": merged})
        target = _views.target(before, after)
        if target is None:
            return NoMatch("more than one dimension is not the data's at the same place")
        return Match(node, (node, first), {**found, "target": target})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source: ir.Value = match.found["source"]
        if "target" in match.found:
            return _views.reshaped(tape, match)
        if "axes" not in match.found:
            return source
        merged = match.found["axes"]
        if facts.opset(match.node) < 13:
            return tape.op(match.node.op_type, [source], {"axes": merged})
        return tape.op(match.node.op_type, [source, _views.integers(tape, merged, match.node.inputs[1])])


def _axes(node: ir.Node) -> tuple[int, ...] | None:
    """Returns the axes of an Unsqueeze or Squeeze, counted in the larger shape; None for other operators."""
    if node.op_type not in ("Unsqueeze", "Squeeze"):
        return None
    longer = node.outputs[0] if node.op_type == "Unsqueeze" else node.inputs[0]
    return _views.axes(node, None if longer is None or longer.shape is None else len(longer.shape))


def _merged(op_type: str, outer: tuple[int, ...], inner: tuple[int, ...]) -> list[int]:
    """Returns the axes of both nodes in the largest of the three shapes. `inner` are the axes of the node that runs
    first."""
    late, early = (outer, inner) if op_type == "Unsqueeze" else (inner, outer)
    # the later Unsqueeze's axes are final; those of the earlier Unsqueeze fill the free places
    free = (axis for axis in range(len(late) + max(early, default=0) + 1) if axis not in late)
    places = list(free)
    return sorted([*late, *(places[axis] for axis in early)])
