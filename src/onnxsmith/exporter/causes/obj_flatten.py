"""`… does not have a field with name '__obj_flatten__'`."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(r"__obj_flatten__|LinearPackedParamsBase|ConvPackedParamsBase|operator '?quantized::|quantized\.\w+")


class ObjFlatten(Cause):
    """A module that was quantized in torch holds packed weights, which are not tensors."""

    rank = 30

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text):
            return None
        return Problem(
            "export/quantized-module",
            "the module was quantized in PyTorch, and its weights are packed for PyTorch's own kernels",
            why="packed weights are not tensors, and ONNX has no operators that read them",
            fix="export the float module, then quantize the ONNX file to QuantizeLinear and DequantizeLinear with "
            "onnxruntime.quantization.quantize_dynamic or quantize_static",
        )
