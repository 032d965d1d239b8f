"""Operands that were attributes, and the dtype of a mask, as newer opsets have them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import operand
from onnxsmith.graph.surgery.node_insertion import Inserter
from onnxsmith.graph.surgery.raisings.base import Raising

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
_OPERANDS: dict[str, tuple[str, ...]] = {
    **{f"Reduce{name}": ("axes",) for name in (*_REDUCTIONS, "Sum")},
    "Squeeze": ("axes",), "Unsqueeze": ("axes",), "Split": ("split",), "Clip": ("min", "max"),
    "Pad": ("pads", "value"), "Slice": ("starts", "ends", "axes"), "TopK": ("k",), "Upsample": ("scales",),
    "Dropout": ("ratio",),
}  # fmt: skip
"""The attributes that became operands, in the order of the operands after the first."""
_OF_INPUT = {"min", "max", "value"}
"""Operands that have the dtype of the first operand."""
_FLOATS = {"scales", "ratio"}
"""Operands of dtype float32. The others are int64."""


class OperandsForAttributes(Raising):
    """Raises attributes that became operands: axes of reductions, bounds of Clip, pads, slices, …

    Writes each attribute as a constant.
    """

    operators: ClassVar[dict[str, int]] = {
        **{f"Reduce{name}": 18 for name in _REDUCTIONS},
        "ReduceSum": 13, "Squeeze": 13, "Unsqueeze": 13, "Split": 13, "Clip": 11, "Pad": 11, "Slice": 10, "TopK": 10,
        "Upsample": 9, "Dropout": 12,
    }  # fmt: skip

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        if node.op_type == "Dropout" and any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
            return "its mask is used, but only since opset 12 is the mask defined outside training"
        data = operand(node, 0)
        found: list[tuple[Any, Any] | None] = []
        for name in _OPERANDS[node.op_type]:
            attribute = node.attributes.get(name) or _default(node, name)
            if attribute is None or (name == "axes" and not attribute.is_ref() and not attribute.value):
                found.append(None)  # an empty list of axes means all axes, as no list does
                continue
            if attribute.is_ref():
                return f"`{name}` refers to an attribute of the function"
            dtype: Any = np.float32 if name in _FLOATS else np.int64
            if name in _OF_INPUT:
                if data is None or data.dtype is None:
                    return f"the dtype of its input is unknown, but `{name}` needs this dtype"
                dtype = data.dtype.numpy()
            found.append(([attribute.value] if name == "k" else attribute.value, dtype))
        while found and found[-1] is None:
            found.pop()
        for name in _OPERANDS[node.op_type]:
            node.attributes.pop(name, None)
        node.resize_inputs(1 + len(found))
        for index, given in enumerate(found, start=1):
            node.replace_input_with(index, None if given is None else write.constant(*given))
        return ""


def _default(node: ir.Node, name: str) -> ir.Attr | None:
    """Returns the bound that a Clip of float64 has without the attribute: the largest float32. Since opset 11 it is the
    largest float64."""
    data = operand(node, 0)
    if node.op_type != "Clip" or data is None or data.dtype != ir.DataType.DOUBLE:
        return None
    bound = float(np.finfo(np.float32).max)
    return ir.AttrFloat32(name, bound if name == "max" else -bound)


class TransformAxis(Raising):
    """Raises a DFT, whose axis was an attribute.

    Writes the axis as a constant operand. It was axis 1 by default, and is the last but one since opset 20.
    """

    operators: ClassVar[dict[str, int]] = {"DFT": 20}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        attribute = node.attributes.pop("axis", None)
        node.resize_inputs(3)
        node.replace_input_with(2, write.constant(1 if attribute is None else attribute.as_int()))
        return ""


class SplitCount(Raising):
    """Raises a Split without sizes, which needs the number of parts since opset 18.

    Writes the number of the node's outputs.
    """

    operators: ClassVar[dict[str, int]] = {"Split": 18}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        if operand(node, 1) is None:
            node.attributes["num_outputs"] = ir.AttrInt64("num_outputs", len(node.outputs))
        return ""


class DropoutMask(Raising):
    """Raises a Dropout whose mask is used. The mask had the dtype of the input, and is boolean since opset 10.

    Casts the mask.
    """

    operators: ClassVar[dict[str, int]] = {"Dropout": 10}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        mask = node.outputs[1] if len(node.outputs) > 1 else None
        if mask is None or not (mask.uses() or mask.is_graph_output()):
            node.resize_outputs(1)
            return ""
        data = operand(node, 0)
        if data is None or data.dtype is None:
            return "the dtype of its input is unknown, but the mask needs this dtype"
        new = ir.Node("", "Dropout", node.inputs, list(node.attributes.values()), num_outputs=2)
        write.graph.insert_before(node, new)
        write.made.append(new)
        new.outputs[0].name, new.outputs[1].name = write.name("output"), write.name("mask")
        write.replace([new.outputs[0], write.op("Cast", new.outputs[1], to=int(data.dtype))])
        return ""
