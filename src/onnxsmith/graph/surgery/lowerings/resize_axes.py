"""Lowers a Resize with a list of axes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import Lowering, numbers, operand, rank
from onnxsmith.graph.surgery.node_insertion import Inserter


class ResizeAxes(Lowering):
    """Writes the scales or sizes of all axes."""

    operators: ClassVar[dict[str, int]] = {"Resize": 18}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        attribute = node.attributes.get("axes")
        if attribute is None:
            return ""
        data, dims = node.inputs[0], rank(node.inputs[0])
        if dims is None:
            return "the number of dimensions is unknown"
        roi = operand(node, 1)
        if roi is not None and numbers(roi) != []:
            return "it has a region of interest for some of the axes"
        axes = [int(axis) % dims for axis in attribute.as_ints()]
        scales, sizes = operand(node, 2), operand(node, 3)
        if sizes is None:
            known = facts.constant(scales)
            if known is not None:
                full = np.ones(dims, np.float32)
                full[axes] = known
                node.replace_input_with(2, write.constant(full, np.float32))
            else:
                ones = write.constant(np.ones(dims), np.float32)
                node.replace_input_with(2, write.op("ScatterElements", ones, write.constant(axes), scales))
        else:
            whole = write.op("Shape", data)
            node.replace_input_with(3, write.op("ScatterElements", whole, write.constant(axes), sizes))
        del node.attributes["axes"]
        return ""
