"""Asks onnx's strict shape inference."""

from __future__ import annotations

from onnxsmith.graph.files.specification_check import refused_by_inference
from onnxsmith.targets.judges._specification import Specification


class OnnxShapes(Specification):
    """Asks onnx's strict shape inference, which compares declared shapes and types with those that operators give."""

    title = "ONNX shape inference, strict"
    says = staticmethod(refused_by_inference)
