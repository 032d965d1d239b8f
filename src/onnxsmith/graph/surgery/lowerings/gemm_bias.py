"""Lowers a Gemm without a third operand, which was required before opset 11."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering, operand
from onnxsmith.graph.surgery.node_insertion import Inserter


class GemmBias(Lowering):
    """Writes a zero for the operand that is left out."""

    operators: ClassVar[dict[str, int]] = {"Gemm": 11}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if operand(node, 2) is not None:
            return ""
        dtype = next((value.dtype for value in node.inputs if value is not None and value.dtype is not None), None)
        if dtype is None:
            return "the dtype of its operands is unknown, and the third one needs it"
        node.resize_inputs(3)
        zero = write.constant([0], dtype.numpy())
        node.replace_input_with(2, zero)
        return ""
