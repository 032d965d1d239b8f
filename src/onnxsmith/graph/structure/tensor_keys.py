"""Makes keys of tensors: equal keys mean equal dtype, shape and bytes."""

from __future__ import annotations

import hashlib

import numpy as np
import onnx_ir as ir

Contents = tuple[ir.DataType, tuple[int, ...], bytes]

DERIVED = "onnxsmith.derived"
"""Is the key of a tensor's `meta` that marks a tensor whose values are computed again at every read."""
_SHORT = 64
"""Limits the bytes for which the key is the content itself. A choice: a SHA-256 digest has 32 bytes, and hashing takes
time."""
_GLIMPSE = 4096
"""Sets the bytes of each of three samples. A choice: one page of memory."""


def outline(tensor: ir.TensorProtocol) -> tuple[ir.DataType, tuple[int, ...]]:
    """Returns dtype and shape, without reading the values."""
    return tensor.dtype, tuple(tensor.shape.numpy())


def glimpse(tensor: ir.TensorProtocol) -> bytes | None:
    """Returns a sample of the tensor's bytes: from the start, the middle and the end of a long tensor, all of a short
    one. Equal tensors have equal samples; different tensors rarely do. Returns None if a sample would need all values
    computed."""
    if DERIVED in tensor.meta:
        return None
    array = np.asarray(tensor.numpy())
    if array.nbytes <= 3 * _GLIMPSE or not array.flags.c_contiguous:
        return np.ascontiguousarray(array).tobytes()
    raw = array.reshape(-1).view(np.uint8)
    middle = len(raw) // 2
    return b"".join(raw[at : at + _GLIMPSE].tobytes() for at in (0, middle, len(raw) - _GLIMPSE))


def with_strings(tensor: ir.TensorProtocol) -> tuple[object, ...]:
    """Returns the key of `contents`; for a tensor of strings, the dtype, shape and strings."""
    found = contents(tensor)
    return found if found is not None else (*outline(tensor), tuple(strings(tensor)))


def strings(tensor: ir.TensorProtocol) -> list[bytes]:
    """Returns the elements of a tensor of strings."""
    if isinstance(tensor, ir.StringTensor):
        return [bytes(item) for item in tensor.string_data()]
    return [item if isinstance(item, bytes) else str(item).encode() for item in tensor.numpy().reshape(-1)]


def contents(tensor: ir.TensorProtocol) -> Contents | None:
    """Returns the key of a tensor; None for strings. 0.0 and -0.0 differ, and so do two NaNs of different bits.

    Longer tensors are hashed (SHA-256). External tensors are read through their memory map, never copied.
    """
    if tensor.dtype == ir.DataType.STRING:
        return None
    array = np.asarray(tensor.numpy())
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    held = raw.tobytes() if raw.nbytes <= _SHORT else hashlib.sha256(raw.data).digest()
    return (*outline(tensor), held)
