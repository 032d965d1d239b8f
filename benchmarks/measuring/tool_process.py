"""Runs one tool on one file: what a fresh process does. Started by `measuring.attempt`, with Python's `-P`.

    python -P tool_process.py TOOL SOURCE TARGET PEAK

Writes the result to TARGET and, when the tool came to an end, the peak memory of this process in KiB to PEAK.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def onnxsmith(source: str, target: str) -> None:
    """Without its verification: the others have none, or a weaker one."""
    import onnxsmith as package

    package.simplify(source, target, verify=False)


def onnxsim(source: str, target: str) -> None:
    """As its command does."""
    import onnx
    import onnxsim as package

    model, _ = package.simplify(source)
    onnx.save(model, target)


def onnxslim(source: str, target: str) -> None:
    """As its command does."""
    import onnx
    import onnxslim as package

    onnx.save(package.slim(source), target)


def onnxscript(source: str, target: str) -> None:
    """Its optimizer, which torch's new exporter calls too. Weights in a second file stay in one."""
    import onnx_ir
    import onnxscript.optimizer

    model = onnx_ir.load(source)
    onnxscript.optimizer.optimize(model)
    external = Path(source + ".data").exists()
    onnx_ir.save(model, target, external_data=Path(target).name + ".data" if external else None)


def onnxoptimizer(source: str, target: str) -> None:
    """All passes that fuse or eliminate."""
    import onnx
    import onnxoptimizer as package

    onnx.save(package.optimize(onnx.load(source), package.get_fuse_and_elimination_passes()), target)


def ort_basic(source: str, target: str) -> None:
    """ONNX Runtime's basic level, written to a file: portable operators only."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = target
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


TOOLS: dict[str, tuple[str, Callable[[str, str], None]]] = {
    "onnxsmith": ("onnxsmith", onnxsmith),
    "onnxsim": ("onnxsim", onnxsim),
    "onnxslim": ("onnxslim", onnxslim),
    "onnxscript": ("onnxscript", onnxscript),
    "onnxoptimizer": ("onnxoptimizer", onnxoptimizer),
    "ort-basic": ("onnxruntime", ort_basic),
}
"""The distribution that a tool comes with, and how it is called; our own first."""


def peak() -> str:
    """The most memory that this process held, in KiB; empty where the system does not say.

    Not `ru_maxrss`: Linux hands that down from the process that started this one.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((line.split()[1] for line in lines if line.startswith("VmHWM")), "")


if __name__ == "__main__":
    tool, given, wanted, told = sys.argv[1:]
    TOOLS[tool][1](given, wanted)
    Path(told).write_text(peak())
