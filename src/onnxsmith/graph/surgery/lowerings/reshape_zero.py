"""Lowers a Reshape with `allowzero`, in which 0 is a size."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering, numbers
from onnxsmith.graph.surgery.node_insertion import Inserter


class ReshapeZero(Lowering):
    """Removes `allowzero` if no size is 0, because it then has no effect."""

    operators: ClassVar[dict[str, int]] = {"Reshape": 14}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if not node.attributes.get_int("allowzero", 0):
            return ""
        sizes = numbers(node.inputs[1])
        if sizes is None or 0 in sizes:
            state = "has a 0" if sizes else "is computed and may have a 0"
            return f"`allowzero` is 1, and the shape {state}, which before opset 14 stood for the input's size"
        del node.attributes["allowzero"]
        return ""
