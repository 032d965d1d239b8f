"""A reduction over dimensions of 1 changes nothing."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._reductions import reduction
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ReduceOne(Rule):
    """The maximum, minimum, sum, product or mean of one element is that element. So a reduction over dimensions of 1 is
    removed, or becomes a Squeeze if it drops these dimensions.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4] x) => (float[N,4] y) {
            a = ReduceMean <axes = [1], keepdims = 1> (x)
            y = ReduceMax <axes = [-2], keepdims = 0> (a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4] x) => (float[N,4] y) <int64[1] axes = {1}> {
            y = Squeeze(x, axes)
        }
    """

    anchor = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found, dims, source = reduction(node), facts.dims(node.inputs[0]), node.inputs[0]
        if found is None or dims is None or source is None or any(dims[axis] != 1 for axis in found.axes):
            return None
        if found.kept or not found.axes:
            return Match(node, (node,), {"source": source})
        return Match(node, (node,), {"axes": found.axes})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        if "source" in match.found:
            source: ir.Value = match.found["source"]
            return source
        axes = list(match.found["axes"])
        if facts.opset(match.node) < 13:
            return tape.op("Squeeze", [match.node.inputs[0]], {"axes": axes})
        given = tape.initializer(ir.Tensor(np.array(axes, np.int64)), name="axes")
        return tape.op("Squeeze", [match.node.inputs[0], given])
