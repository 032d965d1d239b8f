"""Asks onnx's checker."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.files.specification_check import refused_by_checker
from onnxsmith.targets.judges._specification import Specification


class OnnxChecker(Specification):
    """Asks `onnx.checker`, which reads the model and compares it with the operators of the standard."""

    title = "ONNX checker"

    def says(self, model: ir.Model) -> str:
        return refused_by_checker(model)
