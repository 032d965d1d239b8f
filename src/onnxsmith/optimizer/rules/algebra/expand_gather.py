"""A dimension whose elements are each repeated by `Expand` is a `Gather`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_MOST = 1024
"""Indices that are written into the model. A choice: 8 kB of int64."""


class ExpandGather(Rule):
    """Unsqueeze, Expand along the new axis, and a Reshape that merges the new axis with its neighbour, repeat the
    neighbour, either element by element or as a whole. One Gather does the same. Attention whose queries share keys and
    values is written like this (J. Ainslie and others, 2023).

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The neighbour's size, or how often it is repeated, is not a known number.
    3. It would take more than 1024 indices.

    An Expand along other axes, or a Reshape that merges other axes, is no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,3] x) => (float[N,4,3] y)
        <int64[1] axis = {2}, int64[4] twice = {1, 1, 2, 1}, int64[3] merged = {0, 4, 3}> {
            a = Unsqueeze(x, axis)
            b = Expand(a, twice)
            y = Reshape(b, merged)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,3] x) => (float[N,4,3] y) <int64[4] each = {0, 0, 1, 1}> {
            y = Gather <axis = 1> (x, each)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        expand = maker(node.inputs[0], node, "Expand")
        insert = maker(expand.inputs[0], node, "Unsqueeze", "Reshape") if expand is not None else None
        if expand is None or insert is None or insert.inputs[0] is None:
            return None
        source, before = facts.dims(insert.inputs[0]), _views.dims_after(insert)
        after, merged = facts.dims(expand.outputs[0]), _views.dims_after(node)
        if source is None or before is None or after is None or merged is None or len(before) != len(after):
            return None
        grown = [axis for axis, dim in enumerate(before) if dim == 1 and after[axis] != 1]
        if len(grown) != 1 or not facts.same(_without(before, grown[0]), _without(after, grown[0])):
            return None
        axis = grown[0]
        if not facts.same(source, _without(before, axis)):
            return None
        for neighbour in (axis - 1, axis):
            if 0 <= neighbour < len(source) and facts.same(_without(source, neighbour), _without(merged, neighbour)):
                size, times = source[neighbour], after[axis]
                if not isinstance(size, int) or not isinstance(times, int):
                    return NoMatch("how many elements are repeated, or how often, is not known")
                if merged[neighbour] not in (size * times, None):
                    return None
                if not 0 < size * times <= _MOST:
                    return NoMatch("it would take too many indices")
                order = np.arange(size)
                indices = np.repeat(order, times) if neighbour < axis else np.tile(order, times)
                every = (node, expand, insert)
                found = {"source": insert.inputs[0], "axis": neighbour, "indices": indices}
                return read_elsewhere(every) or Match(node, every, found)
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        indices = tape.initializer(ir.Tensor(np.array(match.found["indices"], np.int64)), name="indices")
        return tape.op("Gather", [match.found["source"], indices], {"axis": match.found["axis"]})


def _without(dims: Sequence[facts.Element | None], axis: int) -> list[facts.Element | None]:
    return [*dims[:axis], *dims[axis + 1 :]]
