"""Lowers a Shape of some of the axes."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering
from onnxsmith.graph.surgery.node_insertion import Inserter

_END = 2**31 - 1
"""An end beyond the last axis, which means the end in a Slice."""


class ShapePart(Lowering):
    """Writes the Shape of all axes, and a Slice after it."""

    operators: ClassVar[dict[str, int]] = {"Shape": 15}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", _END)
        for name in ("start", "end"):
            node.attributes.pop(name, None)
        if (start, end) == (0, _END):
            return ""
        whole = write.op("Shape", node.inputs[0])
        part = write.op("Slice", whole, write.constant([start]), write.constant([end]), write.constant([0]))
        write.replace([part])
        return ""
