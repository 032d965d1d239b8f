"""Lowers a Resize without a region of interest, or without scales: both operands were required before opset 13."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering, operand
from onnxsmith.graph.surgery.node_insertion import Inserter


class ResizeOperands(Lowering):
    """Writes empty tensors for the operands that are left out."""

    operators: ClassVar[dict[str, int]] = {"Resize": 13}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if len(node.inputs) < 3:
            node.resize_inputs(3)
        for index in (1, 2):
            if operand(node, index) is None:
                node.replace_input_with(index, write.constant([], np.float32))
        return ""
