"""Lowers a Pad with a list of axes."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering, drop_operands, numbers, operand, rank
from onnxsmith.graph.surgery.node_insertion import Inserter


class PadAxes(Lowering):
    """Writes the pads of all axes: 0 for axes that are not in the list."""

    operators: ClassVar[dict[str, int]] = {"Pad": 18}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        axes = operand(node, 3)
        if axes is None:
            return ""
        chosen, dims, pads = numbers(axes), rank(node.inputs[0]), operand(node, 1)
        if chosen is None or dims is None:
            return "`axes` is computed" if chosen is None else "the number of dimensions is unknown"
        places = [axis % dims for axis in chosen]
        places += [dims + axis for axis in places]
        known = numbers(pads)
        if known is not None:
            full = [0] * (2 * dims)
            for place, pad in zip(places, known, strict=True):
                full[place] = pad
            node.replace_input_with(1, write.constant(full))
        else:
            zeros = write.constant([0] * (2 * dims))
            node.replace_input_with(1, write.op("ScatterElements", zeros, write.constant(places), pads))
        drop_operands(node, 3)
        return ""
