"""A `Gather` of one element with an `Unsqueeze` of its axis is a `Slice`."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.model.shapes import facts
from onnxsmith.rules import _views
from onnxsmith.rules._patterns import integer, maker, read_elsewhere
from onnxsmith.rules._slices import TO_THE_END
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class GatherUnsqueeze(Rule):
    """Unsqueeze(Gather(x, i)) along the axis that the Gather took away is the Slice of x from i to i + 1, where i is a
    constant. Several of them may be the parts of a Split, which is for algebra/slices-split.

    Refused:
    1. The gathered value has other readers, or is a graph output.

    Before opset 13 axes, and before opset 10 the bounds of a Slice, were attributes; the rule does not match then.
    Indices with a shape, which leave an axis, are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,N] x) => (float[1,N] y) <int64 i = {-2}, int64[1] axes = {0}> {
            a = Gather(x, i)
            y = Unsqueeze(a, axes)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,N] x) => (float[1,N] y) <int64[1] start = {0}, int64[1] end = {1}, int64[1] axes = {0}> {
            y = Slice(x, start, end, axes)
        }
    """

    anchor = ("Unsqueeze",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        gather = maker(node.inputs[0], node, "Gather")
        dims = facts.dims(gather.inputs[0]) if gather is not None else None
        axis = integer(gather, "axis", 0) if gather is not None else None
        if gather is None or dims is None or axis is None or facts.opset(node) < 13:
            return None
        index = facts.constant(gather.inputs[1])
        if index is None or index.ndim != 0 or _views.axes(node, len(dims)) != (axis % len(dims),):
            return None
        size, place = dims[axis], int(index)
        if isinstance(size, int) and place < 0:
            place += size
        found = {"source": gather.inputs[0], "start": place, "axis": axis % len(dims)}
        return read_elsewhere((node, gather)) or Match(node, (node, gather), found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        start = match.found["start"]
        bounds = {"start": start, "end": TO_THE_END if start == -1 else start + 1, "axes": match.found["axis"]}
        values = [tape.initializer(ir.tensor(np.array([n], np.int64)), name=name) for name, n in bounds.items()]
        return tape.op("Slice", [match.found["source"], *values])
