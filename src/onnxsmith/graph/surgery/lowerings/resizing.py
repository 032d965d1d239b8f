"""Resize and GridSample, written as older opsets have them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import Lowering, numbers, operand, rank
from onnxsmith.graph.surgery.node_insertion import Inserter


class ResizeAxes(Lowering):
    """Lowers a Resize with a list of axes.

    Writes the scales or sizes of all axes.
    """

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


_ONLY = {
    "coordinate_transformation_mode": ("asymmetric", "half_pixel"),
    "nearest_mode": ("floor", "round_prefer_floor"),
}
"""Is the only form at opset 10, and the default at opset 11."""


class ResizeCoordinates(Lowering):
    """Lowers a Resize to the form before it had a choice of coordinates.

    Removes the attributes of the only form that opset 10 has: scales, asymmetric coordinates, and nearest values by
    floor.
    """

    operators: ClassVar[dict[str, int]] = {"Resize": 11}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        sizes = operand(node, 3)
        if sizes is not None and numbers(sizes) != []:
            return "it is resized to sizes, and opset 10 has scales only"
        nearest = node.attributes.get_string("mode", "nearest") == "nearest"
        for name, (only, default) in _ONLY.items():
            given = node.attributes.get_string(name, default)
            if given != only and (nearest or name != "nearest_mode"):
                return f"`{name}` is {given}, and opset 10 has {only} only"
        scales = node.inputs[2]
        for name in _ONLY:
            node.attributes.pop(name, None)
        node.resize_inputs(2)
        node.replace_input_with(1, scales)
        return ""


class ResizeOperands(Lowering):
    """Lowers a Resize without a region of interest, or without scales: both operands were required before opset 13.

    Writes empty tensors for the operands that are left out.
    """

    operators: ClassVar[dict[str, int]] = {"Resize": 13}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if len(node.inputs) < 3:
            node.resize_inputs(3)
        for index in (1, 2):
            if operand(node, index) is None:
                node.replace_input_with(index, write.constant([], np.float32))
        return ""


_EARLIER = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}


class GridSampleModes(Lowering):
    """Lowers a GridSample, whose modes had other names.

    Writes the old names `bilinear` and `bicubic`. The old GridSample accepted images only, no volumes.
    """

    operators: ClassVar[dict[str, int]] = {"GridSample": 20}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        dims = rank(node.inputs[0])
        if dims != 4:
            return f"the input has {'an unknown number of' if dims is None else dims} dimensions, not 4"
        mode = node.attributes.get_string("mode", "linear")
        node.attributes["mode"] = ir.AttrString("mode", _EARLIER.get(mode, mode))
        return ""
