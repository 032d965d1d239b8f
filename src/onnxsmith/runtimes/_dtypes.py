"""Maps ONNX dtypes to numpy's without the graph library, so that a child process starts fast."""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

_NUMPY: dict[str, type[np.generic]] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    **{name: getattr(np, name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: getattr(np, name) for name in ("complex64", "complex128")},
    "bool": np.bool_,
    "string": np.object_,
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
    "float6e2m3": ml_dtypes.float6_e2m3fn,
    "float6e3m2": ml_dtypes.float6_e3m2fn,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
    "int2": ml_dtypes.int2,
    "uint2": ml_dtypes.uint2,
}
_BITS = {"float6e2m3": 6, "float6e3m2": 6, "float4e2m1": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
NAMES = tuple(_NUMPY)
_NAMED = {np.dtype(kind): name for name, kind in _NUMPY.items()}


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """Returns the numpy dtype of an ONNX dtype name. For bfloat16, float8 and int4 this is a dtype of ml_dtypes, for
    strings it is object."""
    return np.dtype(_NUMPY[name])


def name_of(dtype: np.dtype[Any]) -> str:
    """Returns the ONNX name of a numpy dtype. Raises KeyError for a dtype that ONNX lacks."""
    return _NAMED[dtype]


def bits(name: str) -> int:
    """Returns the bits of one element in ONNX's storage."""
    return _BITS.get(name, numpy_dtype(name).itemsize * 8)


def packed_nbytes(name: str, shape: tuple[int, ...]) -> int:
    """Returns the bytes of a tensor in ONNX's storage, with sub-byte dtypes packed."""
    return math.ceil(bits(name) * math.prod(shape) / 8)


def unpacked(data: bytes, name: str) -> npt.NDArray[Any]:
    """Unpacks elements that share bytes into one byte each, as ml_dtypes stores them. The first element is in the
    lowest bits."""
    width, dtype = bits(name), numpy_dtype(name)
    codes = (np.frombuffer(data, np.uint8)[:, None] >> np.arange(0, 8, width, dtype=np.uint8)) & (2**width - 1)
    flat = codes.reshape(-1).astype(np.int8)
    if name.startswith("float"):
        return np.asarray(flat.view(dtype))
    signed = np.where(flat >= 2 ** (width - 1), flat - 2**width, flat) if name.startswith("int") else flat
    return np.asarray(signed.astype(dtype))


def onnx_name(tensor_type: str) -> str:
    """Returns the dtype's ONNX name: `float` for onnxruntime's `tensor(float)`. onnxruntime says `float16` and `double`
    as ONNX does."""
    match = re.fullmatch(r"tensor\((\w+)\)", tensor_type)
    return match.group(1) if match else tensor_type
