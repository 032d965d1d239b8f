"""Lowers a GridSample, whose modes had other names."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering, rank
from onnxsmith.graph.surgery.node_insertion import Inserter

_EARLIER = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}


class GridSampleModes(Lowering):
    """Writes the old names `bilinear` and `bicubic`. The old GridSample accepted images only, no volumes."""

    operators: ClassVar[dict[str, int]] = {"GridSample": 20}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        dims = rank(node.inputs[0])
        if dims != 4:
            return f"the input has {'an unknown number of' if dims is None else dims} dimensions, not 4"
        mode = node.attributes.get_string("mode", "linear")
        node.attributes["mode"] = ir.AttrString("mode", _EARLIER.get(mode, mode))
        return ""
