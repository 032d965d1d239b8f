"""What a tensor holds, as a key: equal keys mean equal dtype, shape and bytes."""

from __future__ import annotations

import hashlib

import numpy as np
import onnx_ir as ir

Contents = tuple[ir.DataType, tuple[int, ...], bytes]

DERIVED = "onnxsmith.derived"
"""Key of a tensor's `meta`: its values are computed anew whenever they are read."""
_SHORT = 64
"""Bytes up to which a tensor is its own key."""
_GLIMPSE = 4096


def outline(tensor: ir.TensorProtocol) -> tuple[ir.DataType, tuple[int, ...]]:
    """Dtype and shape: what can be compared without reading a value."""
    return tensor.dtype, tuple(tensor.shape.numpy())


def glimpse(tensor: ir.TensorProtocol) -> bytes | None:
    """Some of a long tensor's bytes, from its start, middle and end: equal tensors have equal ones, and few others do.
    All of a short one's. None where reading some would compute all."""
    if DERIVED in tensor.meta:
        return None
    array = np.asarray(tensor.numpy())
    if array.nbytes <= 3 * _GLIMPSE or not array.flags.c_contiguous:
        return np.ascontiguousarray(array).tobytes()
    raw = array.reshape(-1).view(np.uint8)
    middle = len(raw) // 2
    return b"".join(raw[at : at + _GLIMPSE].tobytes() for at in (0, middle, len(raw) - _GLIMPSE))


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
