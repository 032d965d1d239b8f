"""Lowers a CastLike whose second operand has a known dtype."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering
from onnxsmith.graph.surgery.node_insertion import Inserter


class CastLike(Lowering):
    """Replaces the CastLike by a Cast."""

    operators: ClassVar[dict[str, int]] = {"CastLike": 15}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        like = node.inputs[1]
        dtype = None if like is None else like.dtype
        if dtype is None:
            return "the dtype of its second operand is unknown"
        write.replace([write.op("Cast", node.inputs[0], to=int(dtype))])
        return ""
