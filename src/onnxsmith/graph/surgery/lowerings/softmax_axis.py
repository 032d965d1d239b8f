"""Lowers a Softmax along one axis. Before opset 13 it ran over that axis and all axes after it."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering, rank
from onnxsmith.graph.surgery.node_insertion import Inserter


class SoftmaxAxis(Lowering):
    """Moves the axis to the end, where both meanings are the same."""

    operators: ClassVar[dict[str, int]] = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        axis, dims = node.attributes.get_int("axis", -1), rank(node.inputs[0])
        if dims is None:
            if axis != -1:
                return f"the axis is {axis}, and the number of dimensions is unknown"
            node.attributes["axis"] = ir.AttrInt64("axis", -1)
            return ""
        last = dims - 1
        if axis % dims == last:
            node.attributes["axis"] = ir.AttrInt64("axis", last)
            return ""
        order = list(range(dims))
        order[axis % dims], order[last] = last, axis % dims
        moved = write.op("Transpose", node.inputs[0], perm=order)
        write.replace([write.op("Transpose", write.op(node.op_type, moved, axis=last), perm=order)])
        return ""
