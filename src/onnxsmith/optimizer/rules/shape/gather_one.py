"""A `Gather` of the same element everywhere takes that element once."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.graph.structure.uses import freed
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_MOST_NODES = 8
"""The most views that are followed back. A choice that bounds the cost."""


class GatherOne(Rule):
    """If all indices are provably the same number, a Gather is an Expand of that element. Token types that are no graph
    input are an example. With constant data the element is folded. A broadcasting operator needs no Expand
    (shape/expand-before-broadcast).

    Refused:
    1. The rewrite would add more nodes than it removes. Views on the way do not count, because other rules remove them.

    No match: indices of unknown value or shape, and indices out of range.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,T] x) => (float[N,T,3] y)
        <float[2,3] table = {1, 2, 3, 4, 5, 6}, int64 zero = {0}, int64[1] axes = {0}> {
            s = Shape(x)
            a = Expand(zero, s)
            b = Unsqueeze(a, axes)
            c = Squeeze(b, axes)
            y = Gather(table, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,T] x) => (float[N,T,3] y)
        <float[2,3] table = {1, 2, 3, 4, 5, 6}, int64[1,1] index = {0}, int64[1] one = {1}> {
            s = Shape(x)
            r = Gather(table, index)
            t = Concat <axis = 0> (s, one)
            y = Expand(r, t)
        }
    """

    anchor = ("Gather",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        data, indices = node.inputs[0], node.inputs[1]
        dims, counted, number = facts.dims(data), facts.dims(indices), uniform(indices)
        axis, found = integer(node, "axis", 0), _shape_of(indices)
        if data is None or not dims or not counted or axis is None or number is None or found is None:
            return None
        shape, views = found
        size = dims[axis]
        if not isinstance(size, int) or not -size <= int(number) < size:
            return None
        behind = len(dims) - axis % len(dims) - 1
        # an Expand, a Gather unless it is folded, and a Concat for the axes behind
        new = 1 + (facts.constant(data) is None) + (behind > 0)
        if new > freed(node, kept={shape}) - views:
            return NoMatch("it would take more nodes than it frees")
        index = np.full((1,) * len(counted), int(number), np.int64)
        return Match(node, (node,), {"index": index, "shape": shape, "behind": behind})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        data, target = match.node.inputs[0], match.found["shape"]
        index = tape.initializer(ir.tensor(match.found["index"]), name="index")
        one = tape.op("Gather", [data, index], dict(match.node.attributes))
        behind = match.found["behind"]
        if behind:
            target = tape.op("Concat", [target, _views.integers(tape, (1,) * behind, None)], {"axis": 0})
        return tape.op("Expand", [one, target])


def _shape_of(value: ir.Value | None) -> tuple[ir.Value, int] | None:
    """Returns the tensor with the shape of a value that repeats one number, and the number of views on the way that
    keep the shape."""
    dims = facts.dims(value)
    for views in range(_MOST_NODES):
        node = value.producer() if value is not None else None
        if node is None or node.domain or dims is None:
            return None
        if node.op_type in ("Expand", "ConstantOfShape"):
            target = node.inputs[-1]
            if target is not None and facts.same(facts.integers(target), dims):
                return target, views
            return None
        if node.op_type not in (*_views.VIEWS, "Identity"):
            return None
        value = node.inputs[0]
    return None
