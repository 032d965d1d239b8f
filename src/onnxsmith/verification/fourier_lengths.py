"""Reads the lengths of Fourier transforms, with which their rounding grows.

ONNX Runtime transforms a length N that is no power of 2 by the algorithm of Bluestein (onnxruntime pull request 15522).
The algorithm multiplies by exp(iπk²/N) for k below N. The angles reach πN and are rounded in float32, by half a unit
roundoff of πN. In measurements of lengths from 3 to 2000, the error was 0.55 to 0.8 times u·π·N in root mean square,
relative to scale. This is about 2·u·N. For a power of 2 the error is a few u at any length.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes.dims import evaluate
from onnxsmith.verification.quantisers import constant

_AXIS, _LENGTH = 2, 1
"""Numbers the operands of DFT."""
_FRAME = 3
"""Numbers the operand of STFT that holds the length."""


def length(node: ir.Node, sizes: Mapping[str, int] | None) -> tuple[int, bool]:
    """Returns the length N of a DFT or STFT whose rounding is 2·u·N, and whether the length is unknown. Returns (0,
    False) for other nodes and for a power of 2. `sizes` are the known sizes of symbolic dimensions."""
    if node.domain or node.op_type not in ("DFT", "STFT"):
        return 0, False
    found = _number(node, _FRAME if node.op_type == "STFT" else _LENGTH)
    if found is None:
        found = _frame(node) if node.op_type == "STFT" else _signal(node, sizes or {})
    if found is None:
        return 0, True
    return (0 if found & (found - 1) == 0 else found), False


def _number(node: ir.Node, index: int) -> int | None:
    value = constant(node, index)
    return None if value is None or value.size != 1 else int(np.ravel(value)[0])


def _given(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _frame(node: ir.Node) -> int | None:
    """Returns the length of the window of an STFT whose length operand is missing."""
    window = _given(node, 2)
    size = window.shape[0] if window is not None and window.shape is not None and len(window.shape) == 1 else None
    return size if isinstance(size, int) else None


def _signal(node: ir.Node, sizes: Mapping[str, int]) -> int | None:
    """Returns the size of the axis that a DFT without a length transforms."""
    read = _given(node, 0)
    if _given(node, _LENGTH) is not None or read is None or read.shape is None:
        return None
    axis = node.attributes.get_int("axis", 1) if "axis" in node.attributes else _number(node, _AXIS)
    if axis is None:
        axis = -2 if _given(node, _AXIS) is None else None
    if axis is None or not -len(read.shape) <= axis < len(read.shape):
        return None
    size = read.shape[axis]
    return size if isinstance(size, int) else evaluate(size.value, sizes)
