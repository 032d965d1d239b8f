"""Asks onnx's strict shape inference."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.files.specification_check import refused_by_inference
from onnxsmith.targets.judges._specification import Specification


class OnnxShapes(Specification):
    """Asks onnx's strict shape inference, which compares declared shapes and types with those that operators give."""

    title = "ONNX shape inference, strict"

    def says(self, model: ir.Model) -> str:
        return refused_by_inference(model)
