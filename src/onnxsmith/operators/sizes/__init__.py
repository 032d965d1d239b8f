"""Checks the sizes of operands where onnx's inference is lenient."""

from __future__ import annotations

import onnx_ir as ir


def check(node: ir.Node, version: int, where: str) -> None:
    """Raises `build/shape` if the operands' sizes contradict each other."""
