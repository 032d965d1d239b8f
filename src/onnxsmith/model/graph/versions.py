"""The newest versions that the installed onnx can read and write."""

from __future__ import annotations

from dataclasses import dataclass

import onnx


@dataclass(frozen=True)
class Versions:
    """`onnx` is the version of the package, `ir` the newest IR version, `opset` the newest opset of the ONNX domain."""

    onnx: str
    ir: int
    opset: int


def newest() -> Versions:
    """Returns the versions of the installed onnx."""
    return Versions(onnx.__version__, int(onnx.IR_VERSION), onnx.defs.onnx_opset_version())
