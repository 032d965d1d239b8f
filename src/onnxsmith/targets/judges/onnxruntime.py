"""Asks ONNX Runtime on the CPU, without and with its optimisations."""

from __future__ import annotations

from onnxsmith.targets.judges._by_runtime import RuntimeTarget


class OnnxRuntime(RuntimeTarget):
    """Asks onnxruntime with its CPU provider. A model has to load and run with the optimisations off and on."""

    title = "ONNX Runtime (CPU)"
    runtime = "onnxruntime"
    levels = ("disable", "all")
