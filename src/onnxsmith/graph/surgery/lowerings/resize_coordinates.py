"""Lowers a Resize to the form before it had a choice of coordinates."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering, numbers, operand
from onnxsmith.graph.surgery.node_insertion import Inserter

_ONLY = {
    "coordinate_transformation_mode": ("asymmetric", "half_pixel"),
    "nearest_mode": ("floor", "round_prefer_floor"),
}
"""The only form at opset 10, and the default at opset 11."""


class ResizeCoordinates(Lowering):
    """Removes the attributes of the only form that opset 10 has: scales, asymmetric coordinates, and nearest values by
    floor."""

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
