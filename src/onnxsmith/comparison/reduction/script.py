"""Writes a program that shows a failure with only onnx, numpy and the runtime."""

from __future__ import annotations

import re

from onnxsmith.comparison.reduction.runtime_workers import identity
from onnxsmith.runtimes._onnxruntime_host import LEVELS, PROVIDERS
from onnxsmith.runtimes._openvino_host import EXACT
from onnxsmith.runtimes.base import Options

_IMPORTS = {
    "onnxruntime": "import onnxruntime as ort",
    "openvino": "import openvino as ov",
    "reference": "from onnx.reference import ReferenceEvaluator",
}
"""Runtimes that the program calls directly; others are called through onnxsmith."""


def opening(*runtimes: str) -> tuple[str, ...]:
    """Returns the lines that import the runtimes, read the inputs, and set each runtime's options."""
    names = {text.partition(":")[0] for text in runtimes}
    others = names - _IMPORTS.keys()
    lines = ["from pathlib import Path", ""] if others else []
    lines += ["import numpy as np", *(line for name, line in _IMPORTS.items() if name in names)]
    if others:
        lines.append("from onnxsmith.runtimes.base import get")
    lines += ["", 'feeds = dict(np.load("inputs.npz"))']
    for text in dict.fromkeys(runtimes):
        lines += _setting(text)
    return tuple(lines)


def call(runtime: str) -> str:
    """Returns an expression that runs the model on a runtime and gives a list of outputs."""
    name, options = identity(runtime)
    match name:
        case "reference":
            return 'ReferenceEvaluator("model.onnx").run(None, feeds)'
        case "onnxruntime":
            chosen = f", {_variable(runtime)}" if _differ(options) else ""
            own = [PROVIDERS[options.provider]] + [PROVIDERS["cpu"]] * (options.provider != "cpu")
            providers = ", ".join(f'"{provider}"' for provider in own)
            return f'ort.InferenceSession("model.onnx"{chosen}, providers=[{providers}]).run(None, feeds)'
        case "openvino":
            model = f'ov.Core().compile_model("model.onnx", "{options.provider.upper()}", {_variable(runtime)})'
            return f"list({model}(feeds).to_tuple())"
        case _:
            return f'list(get("{runtime}").prepare(Path("model.onnx")).run(feeds).values())'


def _setting(runtime: str) -> list[str]:
    """Returns the lines that set a runtime's options, if they differ from the defaults."""
    (name, options), variable = identity(runtime), _variable(runtime)
    if name == "onnxruntime" and _differ(options):
        lines = [f"{variable} = ort.SessionOptions()"]
        if options.optimization != "all":
            level = LEVELS[options.optimization]
            lines.append(f"{variable}.graph_optimization_level = ort.GraphOptimizationLevel.{level}")
        if options.threads:
            lines.append(f"{variable}.intra_op_num_threads = {options.threads}")
        return lines
    if name == "openvino":
        wanted = dict(EXACT) if options.provider == "cpu" else {"INFERENCE_PRECISION_HINT": "f32"}
        if options.threads:
            wanted["INFERENCE_NUM_THREADS"] = str(options.threads)
        return [f"{variable} = {{", *(f'    "{key}": "{value}",' for key, value in wanted.items()), "}"]
    return []


def _differ(options: Options) -> bool:
    return options.optimization != "all" or options.threads != 0


def _variable(runtime: str) -> str:
    return re.sub(r"\W", "_", f"options_{runtime}")
