"""Writes stored tensors to a `.safetensors` or an `.npz` in pieces, so that no tensor is copied as a whole.

Both formats hold the values in row-major order, low byte first.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.files import array_files
from onnxsmith.graph.reading.exact_text import flat

_PIECE = 1 << 20
"""Counts the elements in one piece. A choice: 8 MiB at most."""
_WIDENED = {"INT2": "INT8", "INT4": "INT8", "UINT2": "UINT8", "UINT4": "UINT8"}
"""Maps integer dtypes of few bits, which both formats lack, to the dtypes that replace them."""
_CODES = {
    **{name.upper(): code for name, code in array_files.SAFETENSORS_CODES.items()},
    "FLOAT8E8M0": "F8_E8M0", "FLOAT8E4M3FNUZ": "F8_E4M3FNUZ", "FLOAT8E5M2FNUZ": "F8_E5M2FNUZ",
    "FLOAT4E2M1": "F4", "COMPLEX64": "C64",
}  # fmt: skip
_PACKED = "FLOAT4E2M1"
"""Names the dtype with two elements in a byte, the first in the low bits, as in ONNX."""
_NOT_NUMPY = {"BFLOAT16", _PACKED, *(name for name in _CODES if name.startswith("FLOAT8"))}
_HELD = {
    ".safetensors": {*_CODES, *_WIDENED},
    ".npz": {*_CODES, *_WIDENED, "COMPLEX128"} - _NOT_NUMPY,
}


def holds(suffix: str, tensor: ir.TensorProtocol) -> bool:
    """Whether the format has a dtype with the same values. A tensor of 4-bit floats also has to fill its last byte."""
    name = tensor.dtype.name
    return name in _HELD[suffix] and not (name == _PACKED and tensor.size % 2)


def is_widened(dtype: ir.DataType) -> bool:
    """Whether the values are stored in a wider integer dtype."""
    return dtype.name in _WIDENED


def write(path: Path, tensors: Mapping[str, ir.TensorProtocol]) -> None:
    """Writes tensors by name, in the format of the suffix. This format must have the dtypes of all tensors.

    Raises:
        OSError, ValueError: when values cannot be read or written, or when their number does not match the shape.
    """
    if path.suffix == ".npz":
        _write_npz(path, tensors)
    else:
        _write_safetensors(path, tensors)


def _write_safetensors(path: Path, tensors: Mapping[str, ir.TensorProtocol]) -> None:
    head: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        size = tensor.size * _stored(tensor).itemsize
        begin, end = end, end + (size // 2 if tensor.dtype.name == _PACKED else size)
        code = _CODES[_WIDENED.get(tensor.dtype.name, tensor.dtype.name)]
        head[name] = {"dtype": code, "shape": list(tensor.shape.numpy()), "data_offsets": [begin, end]}
    with path.open("wb") as file:
        file.write(array_files.safetensors_start(head))
        for tensor in tensors.values():
            _copy(tensor, file)


def _write_npz(path: Path, tensors: Mapping[str, ir.TensorProtocol]) -> None:
    with array_files.new_npz(path) as archive:
        for name, tensor in tensors.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # a fixed date: equal weights give equal files
            with archive.open(entry, "w", force_zip64=True) as file:
                shape = tuple(tensor.shape.numpy())
                about = {"descr": _stored(tensor).str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_2_0(file, about)
                _copy(tensor, file)


def _copy(tensor: ir.TensorProtocol, file: Any) -> None:
    """Copies the values. Afterwards unmaps a file of external data, if the file was not mapped before."""
    mapped_here = isinstance(tensor, ir.ExternalTensor) and tensor.raw is None
    done = 0
    for piece in _pieces(tensor):
        done += piece.size
        codes = piece.view(np.uint8)
        file.write((codes[::2] & 15 | codes[1::2] << 4 if tensor.dtype.name == _PACKED else codes).data)
    if done != tensor.size:
        raise ValueError(f"tensor {tensor.name!r} has {done:,} values, but its shape needs {tensor.size:,}")
    if mapped_here and isinstance(tensor, ir.ExternalTensor):
        tensor.release()


def _pieces(tensor: ir.TensorProtocol) -> Iterator[np.ndarray[Any, Any]]:
    elements, dtype = flat(tensor), _stored(tensor)
    for start in range(0, elements.size, _PIECE):
        piece = elements[start : start + _PIECE]
        yield np.ascontiguousarray(piece if piece.dtype == dtype else piece.astype(dtype))


def _stored(tensor: ir.TensorProtocol) -> np.dtype[Any]:
    """Returns the numpy dtype of the stored values, low byte first."""
    wide = _WIDENED.get(tensor.dtype.name)
    dtype = np.dtype((ir.DataType[wide] if wide else tensor.dtype).numpy())
    return dtype if sys.byteorder == "little" or dtype.isbuiltin != 1 else dtype.newbyteorder("<")
