"""Upsample and Resize, as newer opsets have them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.node_insertion import Inserter
from onnxsmith.graph.surgery.raisings.base import Raising


class UpsampleName(Raising):
    """Raises an Upsample, which is a Resize since opset 10."""

    operators: ClassVar[dict[str, int]] = {"Upsample": 10}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        mode = node.attributes.get_string("mode", "nearest")
        write.replace([write.op("Resize", *node.inputs, mode=mode)])
        return ""


class ResizeCoordinates(Raising):
    """Raises a Resize to the form with a choice of coordinates.

    Writes asymmetric coordinates, which opset 10 had. It rounded nearest coordinates up where a scale is below 1, and
    down elsewhere (onnxruntime, `upsamplebase.h`; the specification says nothing): first shrinks, and then enlarges.
    """

    operators: ClassVar[dict[str, int]] = {"Resize": 11}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        data, scales = node.inputs
        given = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        empty = write.constant([], np.float32)
        if node.attributes.get_string("mode", "nearest") == "nearest":
            known = facts.constant(scales)
            if known is not None and (known <= 1).all() and (known < 1).any():
                given["nearest_mode"] = "ceil"
            elif known is None or (known < 1).any():
                below, above = _split(scales, write)
                data = write.op("Resize", data, empty, below, mode="nearest", **given | {"nearest_mode": "ceil"})
                scales = above
        for name, value in given.items():
            node.attributes[name] = ir.AttrString(name, value)
        node.resize_inputs(3)
        for index, operand in enumerate((data, empty, scales)):
            node.replace_input_with(index, operand)
        return ""


def _split(scales: ir.Value | None, write: Inserter) -> tuple[ir.Value, ir.Value]:
    """Returns the scales below 1 and those above, with 1 in the place of the others."""
    known = facts.constant(scales)
    if known is not None:
        return write.constant(np.minimum(known, 1), np.float32), write.constant(np.maximum(known, 1), np.float32)
    one = write.constant([1], np.float32)
    return write.op("Min", scales, one), write.op("Max", scales, one)
