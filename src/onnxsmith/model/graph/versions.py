"""How new a model the installed onnx can read and write."""

from __future__ import annotations

from dataclasses import dataclass

import onnx


@dataclass(frozen=True)
class Versions:
    """`onnx` is the package's version, `ir` the newest IR version, `opset` that of the ONNX domain."""

    onnx: str
    ir: int
    opset: int


def newest() -> Versions:
    """What the installed onnx knows."""
    return Versions(onnx.__version__, int(onnx.IR_VERSION), onnx.defs.onnx_opset_version())
