"""A computed but known target of `Reshape` becomes a constant."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ConstantReshape(Rule):
    """A target that is computed from shapes is often redundant: its symbolic elements are dimensions of the data at the
    same place, which 0 copies. One more element, known or not, can be -1, so that the Reshape computes it; this fails
    if another dimension is empty. The dynamic dimensions stay dynamic. The result needs no `allowzero`, because no
    element of the new target means an empty dimension.

    Refused:
    1. More than one element is neither an integer nor the data's dimension at the same place.
    2. A dimension of the result is 0: in the new target a 0 would copy a dimension.
    3. An element would have to be -1, and another dimension may be empty.

    A target of which not even the number of elements is known is no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4,6] x) => (float[batch,24] y) <int64[1] zero = {0}, int64[1] last = {24}> {
            s = Shape(x)
            n = Gather(s, zero)
            t = Concat <axis = 0> (n, last)
            y = Reshape(x, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4,6] x) => (float[batch,24] y) <int64[2] t = {0, 24}> {
            y = Reshape(x, t)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if len(node.inputs) < 2 or facts.constant(node.inputs[1]) is not None:
            return None
        wanted = facts.dims(node.outputs[0])
        if wanted is None:
            return None
        target = _views.target(facts.dims(node.inputs[0]), wanted)
        if target is None:
            return NoMatch(_why_not(facts.dims(node.inputs[0]) or (), wanted))
        return Match(node, (node,), {"source": node.inputs[0], "target": target})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return _views.reshaped(tape, match)


def _why_not(data: _views.Dims, wanted: _views.Dims) -> str:
    if 0 in wanted:
        return "a dimension of the result is 0"
    copied = [index < len(data) and facts.same([dim], [data[index]]) for index, dim in enumerate(wanted)]
    worked_out = [dim for dim, is_copy in zip(wanted, copied, strict=True) if not is_copy and not isinstance(dim, int)]
    if len(worked_out) > 1:
        return "more than one element depends on sizes in a way that 0 and -1 cannot say"
    return "an element would have to be worked out beside a dimension that may be empty"
