"""A reduction of a transposed tensor reduces the tensor before the transpose."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import maker
from onnxsmith.optimizer.rules._reductions import REDUCING, Reduction, reduction, write
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class TransposeReduce(Rule):
    """A reduction removes axes, or reduces them to size 1. If the other axes are then in their old order, the reduction
    can read the data before the Transpose, which is removed. An example is the mean over height and width in a network
    that was converted from channels last.

    Refused:
    1. The other axes change places: a Transpose would still be needed, after the reduction.

    Axes that are not known are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,2] y) {
            t = Transpose <perm = [0, 2, 3, 1]> (x)
            y = ReduceMean <axes = [1, 2], keepdims = 0> (t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,2] y) {
            y = ReduceMean <axes = [2, 3], keepdims = 0> (x)
        }
    """

    anchor = REDUCING
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        transpose = maker(node.inputs[0], node, "Transpose")
        order = perm(transpose) if transpose is not None else None
        found = reduction(node) if order is not None else None
        if transpose is None or order is None or found is None or found.axes[-1:] >= (len(order),):
            return None
        axes = tuple(sorted(order[axis] for axis in found.axes))
        left = [one for axis, one in enumerate(order) if axis not in found.axes]
        if left != sorted(left) or (found.kept and axes != found.axes):
            return NoMatch("the axes that are left change places")
        return Match(node, (node, transpose), {"source": transpose.inputs[0], "over": Reduction(axes, found.kept)})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return write(tape, match.node.op_type, match.found["source"], match.found["over"], facts.opset(match.node))
