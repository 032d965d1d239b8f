"""Knows which opsets the installed onnx writes."""

from __future__ import annotations

import onnx.defs

from onnxsmith.base.problem import problem

OLDEST = 7
"""Is the oldest opset that is written. A choice: the converters of onnx go back to it."""


def refuse_unknown(opset: int, instead: str = "without --opset the exporter chooses one") -> None:
    """Raises for an opset that cannot be written; `instead` says what happens without one.

    Raises:
        OnnxsmithError: `export/opset`.
    """
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST <= opset <= newest:
        raise problem(
            "export/opset",
            f"opset {opset} cannot be written",
            why=f"the installed onnx {onnx.__version__} writes opsets {OLDEST} to {newest}",
            fix=f"choose an opset from this range; {instead}",
        )
