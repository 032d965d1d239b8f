"""Lowers a Split into a number of parts."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import Lowering, operand
from onnxsmith.graph.surgery.node_insertion import Inserter


class SplitCount(Lowering):
    """Writes the sizes of the parts. All are equal, but the last may be smaller (onnx, Split since opset 18)."""

    operators: ClassVar[dict[str, int]] = {"Split": 18}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        attribute = node.attributes.get("num_outputs")
        if attribute is None or operand(node, 1) is not None:
            return ""
        count, axis = len(node.outputs), node.attributes.get_int("axis", 0)
        data = node.inputs[0]
        dims = facts.dims(data)
        size = None if dims is None else dims[axis]
        if isinstance(size, int):
            part = -(-size // count)
            sizes = write.constant([part] * (count - 1) + [size - part * (count - 1)])
        else:
            length = write.op("Gather", write.op("Shape", data), write.constant([axis]), axis=0)
            more = write.op("Add", length, write.constant([count - 1]))
            part_size = write.op("Div", more, write.constant([count]))
            others = write.op("Mul", part_size, write.constant([count - 1]))
            sizes = write.op("Concat", *[part_size] * (count - 1), write.op("Sub", length, others), axis=0)
        del node.attributes["num_outputs"]
        node.resize_inputs(2)
        node.replace_input_with(1, sizes)
        return ""
