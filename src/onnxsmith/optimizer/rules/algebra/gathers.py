"""Makes `Gather` from an `Expand`, moves it before a dequantisation, and replaces it by a `Slice`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import integer, maker, read_elsewhere
from onnxsmith.optimizer.rules.algebra.slices import TO_THE_END
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found


_MOST_INDICES = 1024
"""Limits the indices that are written into the model. A choice: 8 kB of int64."""


class ExpandGather(PatternRule):
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
    pattern = "a = Expand(either(Unsqueeze(x, ...), Reshape(x, ...)), t)  y = Reshape(a, ...)"
    replacement = "Gather <axis = ?axis> (x, indices)"
    sole_reader = True

    def check(self, found: Found) -> Answer:
        node, expand, insert = found.taken
        source, before = facts.dims(found["x"]), _views.dims_after(insert)
        after, merged = facts.dims(expand.outputs[0]), _views.dims_after(node)
        if source is None or before is None or after is None or merged is None or len(before) != len(after):
            return None
        grown = [axis for axis, dim in enumerate(before) if dim == 1 and after[axis] != 1]
        if len(grown) != 1 or not facts.same(_without_axis(before, grown[0]), _without_axis(after, grown[0])):
            return None
        axis = grown[0]
        if not facts.same(source, _without_axis(before, axis)):
            return None
        for neighbour in (axis - 1, axis):
            if 0 <= neighbour < len(source) and facts.same(
                _without_axis(source, neighbour), _without_axis(merged, neighbour)
            ):
                size, times = source[neighbour], after[axis]
                if not isinstance(size, int) or not isinstance(times, int):
                    return NoMatch("the number of elements, or how often they are repeated, is not known")
                if merged[neighbour] not in (size * times, None):
                    return None
                if not 0 < size * times <= _MOST_INDICES:
                    return NoMatch("the Gather would need too many indices")
                order = np.arange(size)
                indices = np.repeat(order, times) if neighbour < axis else np.tile(order, times)
                return {"axis": neighbour, "indices": indices.astype(np.int64)}
        return None


def _without_axis(dims: Sequence[facts.Element | None], axis: int) -> list[facts.Element | None]:
    return [*dims[:axis], *dims[axis + 1 :]]


_GATHERED_DTYPES = (ir.DataType.INT8, ir.DataType.UINT8)
"""Lists dtypes that every runtime can gather. 4-bit dtypes are not among them."""


class GatherDequantize(Rule):
    """Gather(DequantizeLinear(table)) is DequantizeLinear(Gather(table)): the runtime then converts only the rows that
    are used, not the whole table of an embedding in each run. onnxruntime's static quantisation writes embeddings like
    this.

    Refused:
    1. The dequantised table has other readers: it would still be computed.
    2. Each row has a scale of its own, along the axis of the Gather.
    3. The result is quantised again: runtimes for integers look for DequantizeLinear, Gather and QuantizeLinear in a
       row.

    Tables that are not constant, or not of 8 bits, and scales by block are no match.

    Before:
        <ir_version: 10, opset_import: ["": 21]>
        g (int64[N] i) => (float[N,2] y) <int8[3,2] t = {1, 2, 3, 4, 5, 6}, float s = {0.5}, int8 z = {1}> {
            d = DequantizeLinear(t, s, z)
            y = Gather(d, i)
        }

    After:
        <ir_version: 10, opset_import: ["": 21]>
        g (int64[N] i) => (float[N,2] y) <int8[3,2] t = {1, 2, 3, 4, 5, 6}, float s = {0.5}, int8 z = {1}> {
            r = Gather(t, i)
            y = DequantizeLinear(r, s, z)
        }
    """

    anchor = ("Gather",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        wide = maker(node.inputs[0], node, "DequantizeLinear")
        if wide is None or not facts.is_constant(wide.inputs[0]) or integer(wide, "block_size", 0) != 0:
            return None
        table, picked = facts.dims(wide.inputs[0]), facts.dims(node.inputs[1])
        axis, scale = integer(node, "axis", 0), facts.dims(wide.inputs[1])
        if wide.inputs[0] is None or wide.inputs[0].dtype not in _GATHERED_DTYPES:
            return None
        if table is None or picked is None or axis is None or scale is None or not table:
            return None
        attributes: dict[str, int] = {}
        if scale not in ((), (1,)):
            along = integer(wide, "axis", 1)
            if along is None or len(scale) != 1:
                return None
            along, at = along % len(table), axis % len(table)
            if along == at:
                return NoMatch("each row has a scale of its own", wide)
            attributes["axis"] = along if along < at else along + len(picked) - 1
        if any(reader.op_type == "QuantizeLinear" for reader in node.outputs[0].consumers()):
            return NoMatch("the result is quantised again")
        kept = {name: value for name, value in wide.attributes.items() if name != "axis"}
        return read_elsewhere((node, wide)) or Match(node, (node, wide), {"attributes": {**kept, **attributes}})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        node, wide = match.nodes
        rows = tape.op("Gather", [wide.inputs[0], node.inputs[1]], dict(node.attributes))
        return tape.op("DequantizeLinear", [rows, *wide.inputs[1:]], match.found["attributes"])


class GatherUnsqueeze(PatternRule):
    """Unsqueeze(Gather(x, i)) along the axis that the Gather removed is the Slice of x from i to i + 1, if i is a
    constant. Several such Slices may be the parts of a Split, which algebra/slices-split makes.

    Refused:
    1. The gathered value has other readers, or is a graph output.
    2. The model's opset is below 10, which introduced Slice with bounds as inputs.

    Indices of rank 1 or more are no match: the Gather keeps an axis then.

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
    pattern = "a = Gather <axis = ?axis> (x, c_i)  y = Unsqueeze(a, ...)"
    replacement = "Slice(x, start, end, axes)"
    since = 10
    form = "its bounds as inputs"
    sole_reader = True

    def check(self, found: Found) -> Answer:
        dims, axis, index = facts.dims(found["x"]), found.integer("axis"), found.constant("c_i")
        if not dims or axis is None or index.ndim or _views.axes(found.node, len(dims)) != (axis % len(dims),):
            return None
        size, start = dims[axis], int(index)
        if isinstance(size, int) and start < 0:
            start += size
        bounds = {"start": start, "end": TO_THE_END if start == -1 else start + 1, "axes": axis % len(dims)}
        return {name: np.array([number], np.int64) for name, number in bounds.items()}
