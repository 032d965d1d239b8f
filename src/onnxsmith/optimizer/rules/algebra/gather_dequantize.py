"""Rows of a quantised table are dequantised after the `Gather`, not the whole table before it."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import integer, maker, read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_DTYPES = (ir.DataType.INT8, ir.DataType.UINT8)
"""Dtypes that every runtime can gather. 4-bit dtypes are not among them."""


class GatherDequantize(Rule):
    """Gather(DequantizeLinear(table)) is DequantizeLinear(Gather(table)): the runtime then converts only the rows that
    are used, not the whole table of an embedding in each run.

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
        if wide.inputs[0] is None or wide.inputs[0].dtype not in _DTYPES:
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
