"""Asks the reference evaluator of the onnx package."""

from __future__ import annotations

from onnxsmith.targets.judges._by_runtime import RuntimeTarget


class Reference(RuntimeTarget):
    """Runs onnx.reference, which follows the standard operator by operator, and lacks some operators."""

    title = "ONNX reference evaluator"
    runtime = "reference"
