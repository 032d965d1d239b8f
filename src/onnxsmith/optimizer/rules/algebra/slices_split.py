"""Slices that cut a value into parts are one `Split`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _node_order, _slices, _split
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class SlicesSplit(Rule):
    """x[:a], x[a:b], x[b:] are the parts of Split(x), if the bounds are numbers without gaps, and the size of the
    dimension is known.

    Refused:
    1. The last part goes to the end of a dimension of unknown size, but a Split needs the size of each part.

    No match: parts that overlap, leave gaps, have other steps than 1 or cut several axes; opsets below 10, where bounds
    were attributes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,6] x) => (float[N,3] y)
        <int64[1] a = {0}, int64[1] b = {3}, int64[1] c = {9223372036854775807}, int64[1] one = {1}> {
            p = Slice(x, a, b, one)
            q = Slice(x, b, c, one)
            y = Mul(p, q)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,6] x) => (float[N,3] y) <int64[2] split = {3, 3}> {
            p, q = Split <axis = 1> (x, split)
            y = Mul(p, q)
        }
    """

    anchor = ("Slice",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        own = _slices.ranges(node)
        if own is None or len(own) != 1:
            return None
        ((axis, cut),) = own.items()
        dims = facts.dims(node.inputs[0]) or ()
        if not isinstance(dims[axis], int):
            return _opens(node, axis, cut)
        slices = _slices.parts(node)
        if not slices:
            return None
        sizes = [found[axis].end - found[axis].start for found in map(_slices.ranges, slices) if found]
        return Match(node, tuple(slices), {"axis": axis, "sizes": sizes}, before=_node_order.first(slices))

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> dict[ir.Value, ir.Value]:
        axis, sizes, opset = match.found["axis"], match.found["sizes"], facts.opset(match.node)
        parts = _split.split(tape, match.node.inputs[0], axis, sizes, opset)
        return dict(zip((node.outputs[0] for node in match.nodes), parts, strict=True))


def _opens(node: ir.Node, axis: int, cut: _slices.Range) -> NoMatch | None:
    """Returns a refusal if this Slice is the first part and another Slice begins at its end; None otherwise."""
    source = node.inputs[0]
    if source is None or not cut.is_plain or cut.start != 0:
        return None
    for reader in source.consumers():
        other = (_slices.ranges(reader) or {}).get(axis) if reader.op_type == "Slice" else None
        if other is not None and other.step == 1 and other.start == cut.end:
            return NoMatch("the size of the dimension is not known", source)
    return None
