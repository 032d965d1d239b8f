"""What a tensor holds, as a key: equal keys mean equal dtype, shape and bytes."""

from __future__ import annotations

import hashlib

import numpy as np
import onnx_ir as ir

Contents = tuple[ir.DataType, tuple[int, ...], bytes]

_SHORT = 64
"""Bytes up to which a tensor is its own key."""


def outline(tensor: ir.TensorProtocol) -> tuple[ir.DataType, tuple[int, ...]]:
    """Dtype and shape: what can be compared without reading a value."""
    return tensor.dtype, tuple(tensor.shape.numpy())


def contents(tensor: ir.TensorProtocol) -> Contents | None:
    """The key of a tensor; None for strings. 0.0 and -0.0 differ, and so do two NaNs of different bits.

    Longer tensors are hashed (SHA-256); one in an external file is read through its memory map, never copied.
    """
    if tensor.dtype == ir.DataType.STRING:
        return None
    array = np.asarray(tensor.numpy())
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    held = raw.tobytes() if raw.nbytes <= _SHORT else hashlib.sha256(raw.data).digest()
    return (*outline(tensor), held)
