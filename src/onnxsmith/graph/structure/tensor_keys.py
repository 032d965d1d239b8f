"""Makes keys of tensors: equal keys mean equal dtype, shape and bytes."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx_ir as ir

from onnxsmith.base import user_files

Contents = tuple[ir.DataType, tuple[int, ...], bytes]

DERIVED = "onnxsmith.derived"
"""Is the key of a tensor's `meta` that marks a tensor whose values are computed again at every read."""
_SHORT = 64
"""Limits the bytes for which the key is the content itself. A choice: a SHA-256 digest has 32 bytes, and hashing takes
time."""
_GLIMPSE = 4096
"""Sets the bytes of each of three samples. A choice: one page of memory."""
_IS_LITTLE = sys.byteorder == "little"
"""Whether an array has the bytes of the file in memory: ONNX stores the least byte first."""


def outline(tensor: ir.TensorProtocol) -> tuple[ir.DataType, tuple[int, ...]]:
    """Returns dtype and shape, without reading the values."""
    return tensor.dtype, tuple(tensor.shape.numpy())


def glimpse(tensor: ir.TensorProtocol) -> bytes | None:
    """Returns a sample of the tensor's bytes: from the start, the middle and the end of a long tensor, all of a short
    one. Equal tensors have equal samples; different tensors rarely do. Returns None if a sample would need all values
    computed."""
    if DERIVED in tensor.meta:
        return None
    if isinstance(tensor, ir.ExternalTensor) and tensor.raw is None and tensor.dtype.bitwidth >= 8 and _IS_LITTLE:
        size = tensor.nbytes  # read, not mapped: a map holds a large page of memory for each sample
        if size > 3 * _GLIMPSE:
            with user_files.opened(Path(tensor.path)) as file:
                return b"".join(_read(file, (tensor.offset or 0) + at) for at in _places(size))
    array = np.asarray(tensor.numpy())
    if array.nbytes <= 3 * _GLIMPSE or not array.flags.c_contiguous:
        return np.ascontiguousarray(array).tobytes()
    raw = array.reshape(-1).view(np.uint8)
    return b"".join(raw[at : at + _GLIMPSE].tobytes() for at in _places(len(raw)))


def _places(size: int) -> tuple[int, int, int]:
    """Returns where the samples of so many bytes begin."""
    return 0, size // 2, size - _GLIMPSE


def _read(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    return file.read(_GLIMPSE)


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
