"""Lowers operands that were attributes before: axes of reductions, bounds of Clip, pads, slices, …"""

from __future__ import annotations

from typing import Any, ClassVar

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import Lowering, drop_operands, numbers, operand, rank
from onnxsmith.graph.surgery.node_insertion import Inserter

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    **{f"Reduce{name}": ("axes",) for name in (*_REDUCTIONS, "Sum")},
    "Squeeze": ("axes",), "Unsqueeze": ("axes",), "Split": ("split",), "Clip": ("min", "max"),
    "Pad": ("pads", "value"), "Slice": ("starts", "ends", "axes", "steps"), "TopK": ("k",), "DFT": ("", "axis"),
    "Dropout": ("ratio", "training_mode"),
}  # fmt: skip
"""The attributes that held the operands after the first operand."""
_LISTS = {"axes", "split", "pads", "starts", "ends"}
_NEUTRAL = {"steps": 1, "training_mode": 0}
"""Operands without an earlier form, and the value with which they have no effect."""


class AttributesForOperands(Lowering):
    """Writes constant operands as attributes."""

    operators: ClassVar[dict[str, int]] = {
        **{f"Reduce{name}": 18 for name in _REDUCTIONS},
        "ReduceSum": 13, "Squeeze": 13, "Unsqueeze": 13, "Split": 13, "Clip": 11, "Pad": 11, "Slice": 10, "TopK": 10,
        "DFT": 20, "Dropout": 12,
    }  # fmt: skip

    def lower(self, node: ir.Node, write: Inserter) -> str:
        found: dict[str, Any] = {}
        for index, name in enumerate(_ATTRIBUTES[node.op_type], start=1):
            value = operand(node, index)
            if value is None or not name:
                continue
            known = facts.constant(value)
            elements = numbers(value) if known is None else known.ravel().tolist()
            if elements is None:
                return f"`{name}` is computed, and was an attribute before opset {write.opset + 1}"
            if name in _NEUTRAL:
                if any(int(one) != _NEUTRAL[name] for one in elements):
                    return f"`{name}` is {elements[0]}, which opset {write.opset} cannot say"
            elif name in _LISTS:
                found[name] = [int(one) for one in elements]
            else:
                found[name] = elements[0]
        reason = self._empty(node, found) or self._transform_axis(node, found)
        if reason:
            return reason
        for name, given in found.items():
            node.attributes[name] = ir.convenience.convert_attribute(name, given)
        drop_operands(node, 2 if node.op_type == "DFT" else 1)
        return ""

    def _empty(self, node: ir.Node, found: dict[str, Any]) -> str:
        """Handles an empty list of axes, which stands for all axes, or for none with `noop_with_empty_axes`."""
        if "axes" not in _ATTRIBUTES[node.op_type]:
            return ""
        if not found.get("axes"):
            if node.attributes.get_int("noop_with_empty_axes", 0):
                return "`noop_with_empty_axes` is 1, and there are no axes"
            if node.op_type.startswith("Reduce"):
                found.pop("axes", None)
        node.attributes.pop("noop_with_empty_axes", None)
        return ""

    def _transform_axis(self, node: ir.Node, found: dict[str, Any]) -> str:
        """Handles the axis of DFT. It is the last but one by default, and was axis 1; negative axes were not
        allowed."""
        if node.op_type != "DFT":
            return ""
        axis, dims = int(found.get("axis", -2)), rank(node.inputs[0])
        if axis < 0 and dims is None:
            return f"axis {axis} is counted from the end, and the number of dimensions is unknown"
        found["axis"] = axis if dims is None else axis % dims
        return ""
