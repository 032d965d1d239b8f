"""Concat: the channels of each operand, one behind the other."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators._channel_origins import origin
from onnxsmith.precision.pruning.operators.base import Operator, integer


class Concatenation(Operator):
    """Along the axis each operand's channels are those of a part of the result; operands whose channels are fixed keep
    theirs. Along the others all operands go together."""

    ops = ("Concat",)

    def link(self, node: ir.Node, links: Links) -> None:
        operands, y = [value for value in node.inputs if value is not None], node.outputs[0]
        count = rank(y) or 0
        along = integer(node, "axis", 0) % max(1, count)
        for axis in range(count):
            if not any(links.is_live(value, axis) for value in operands) or static(y, axis) is None:
                continue
            if axis != along:
                self._together(links, operands, y, axis)
                continue
            begin = 0
            for value in operands:
                size = static(value, axis) or 0
                if links.is_live(value, axis):
                    links.tie(value, axis, y, axis, None, np.arange(begin, begin + size))
                begin += size

    def _together(self, links: Links, operands: list[ir.Value], y: ir.Value, axis: int) -> None:
        for value in operands:
            if links.is_live(value, axis) or is_weight(value):
                links.tie(value, axis, y, axis)
            else:
                links.pin(y, axis, f"it is joined to {value.name!r}, {origin(value)}, whose size is fixed")
