"""The program that shows a failure with nothing but onnx, numpy and the runtime."""

from __future__ import annotations

from onnxsmith.reduction.named import LEVELS

_ORT_LEVELS = {"disable": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED"}
_PLAIN = {"onnxruntime", "reference"}


def opening(*runtimes: str) -> tuple[str, ...]:
    """The lines that import what the runtimes need, and read the inputs."""
    names = {text.partition(":")[0] for text in runtimes}
    lines = ["from pathlib import Path", ""] if names - _PLAIN else []
    lines.append("import numpy as np")
    if "onnxruntime" in names:
        lines.append("import onnxruntime as ort")
    if "reference" in names:
        lines.append("from onnx.reference import ReferenceEvaluator")
    if names - _PLAIN:
        lines.append("from onnxsmith.reduction.named import resolve")
    lines += ["", 'feeds = dict(np.load("inputs.npz"))']
    for text in runtimes:
        if level := _level(text):
            lines.append(f"{_options(text)} = ort.SessionOptions()")
            lines.append(f"{_options(text)}.graph_optimization_level = ort.GraphOptimizationLevel.{level}")
    return tuple(lines)


def call(runtime: str) -> str:
    """An expression that runs the model on a runtime: a list of outputs."""
    name = runtime.partition(":")[0]
    if name == "reference":
        return 'ReferenceEvaluator("model.onnx").run(None, feeds)'
    if name == "onnxruntime":
        options = f", {_options(runtime)}" if _level(runtime) else ""
        return f'ort.InferenceSession("model.onnx"{options}, providers=["CPUExecutionProvider"]).run(None, feeds)'
    return f'list(resolve("{runtime}")[0].prepare(Path("model.onnx"), resolve("{runtime}")[1]).run(feeds).values())'


def _level(runtime: str) -> str | None:
    name, _, level = runtime.partition(":")
    return _ORT_LEVELS.get(LEVELS.get(level, "")) if name == "onnxruntime" else None


def _options(runtime: str) -> str:
    return "options_" + runtime.partition(":")[2]
