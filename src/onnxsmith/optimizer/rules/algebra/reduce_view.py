"""A reduction with a view after it keeps or drops its axes itself."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import FLOATS, maker, read_elsewhere
from onnxsmith.optimizer.rules._reductions import REDUCING, Reduction, reduction, write
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_POOLS = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}


class ReduceView(Rule):
    """A reduction that keeps its axes, and a Squeeze of them, is a reduction that drops them. A reduction that drops
    its axes, and an Unsqueeze of them, is a reduction that keeps them. Reshape and Flatten with the same effect count,
    too. A global pool always keeps its axes and takes the mean or the maximum over them: it becomes ReduceMean or
    ReduceMax.

    Refused:
    1. The reduction has other readers, or is a graph output.

    Views are no match if their effect is not provably the same.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,2] y) <int64[2] s = {2, 3}> {
            a = GlobalAveragePool(x)
            y = Squeeze(a, s)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,2] y) {
            y = ReduceMean <axes = [2, 3], keepdims = 0> (x)
        }
    """

    anchor = _views.VIEWS
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        reducing = maker(node.inputs[0], node, *REDUCING, *_POOLS)
        found = _found(reducing) if reducing is not None else None
        if reducing is None or found is None:
            return None
        wanted = Reduction(found.axes, not found.kept)
        dims = facts.dims(reducing.inputs[0]) or ()
        after: Sequence[facts.Element | None] = [1 if axis in found.axes else dim for axis, dim in enumerate(dims)]
        if not wanted.kept:
            after = [dim for axis, dim in enumerate(dims) if axis not in found.axes]
        if not facts.same(facts.dims(node.outputs[0]), after):
            return None
        return read_elsewhere((node, reducing)) or Match(node, (node, reducing), {"wanted": wanted})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        reducing = match.nodes[1]
        op_type = _POOLS.get(reducing.op_type, reducing.op_type)
        return write(tape, op_type, reducing.inputs[0], match.found["wanted"], facts.opset(match.node))


def _found(node: ir.Node) -> Reduction | None:
    if node.op_type not in _POOLS:
        return reduction(node)
    dims = facts.dims(node.inputs[0])
    dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
    if dims is None or len(dims) < 3 or dtype not in FLOATS:
        return None
    return Reduction(tuple(range(2, len(dims))), kept=True)
