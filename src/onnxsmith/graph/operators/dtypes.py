"""Reads and writes dtypes: `"float32"`, `np.float32`, `torch.float32` and `ir.DataType.FLOAT` mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import problem

_SHOWN = {
    ir.DataType.FLOAT: "float32",
    ir.DataType.DOUBLE: "float64",
    **{dtype: dtype.name.lower() for dtype in ir.DataType if dtype.name not in ("FLOAT", "DOUBLE", "UNDEFINED")},
}
_READ = {
    **{name: dtype for dtype, name in _SHOWN.items()},
    "float": ir.DataType.FLOAT, "double": ir.DataType.DOUBLE, "half": ir.DataType.FLOAT16,
    "fp16": ir.DataType.FLOAT16, "fp32": ir.DataType.FLOAT, "fp64": ir.DataType.DOUBLE, "bf16": ir.DataType.BFLOAT16,
    "int": ir.DataType.INT64, "long": ir.DataType.INT64, "str": ir.DataType.STRING, "object": ir.DataType.STRING,
    "float8_e4m3fn": ir.DataType.FLOAT8E4M3FN, "float8_e4m3fnuz": ir.DataType.FLOAT8E4M3FNUZ,
    "float8_e5m2": ir.DataType.FLOAT8E5M2, "float8_e5m2fnuz": ir.DataType.FLOAT8E5M2FNUZ,
    "float8_e8m0fnu": ir.DataType.FLOAT8E8M0,
}  # fmt: skip
_PYTHON: dict[Any, ir.DataType] = {
    float: ir.DataType.FLOAT, int: ir.DataType.INT64, bool: ir.DataType.BOOL, str: ir.DataType.STRING,
}  # fmt: skip


def shown(dtype: ir.DataType | None) -> str | None:
    """Returns the name of a dtype, such as `float32`, `bfloat16` or `string`; None if it is unknown."""
    return None if dtype is None else _SHOWN.get(dtype)


def read(dtype: Any, where: str) -> ir.DataType:
    """Reads a dtype: a name, a dtype of numpy, ml_dtypes or torch, a Python type, or an `ir.DataType`.

    Raises:
        OnnxsmithError: `build/dtype`.
    """
    if isinstance(dtype, ir.DataType) and dtype != ir.DataType.UNDEFINED:
        return dtype
    if isinstance(dtype, int) and not isinstance(dtype, bool) and dtype in set(_SHOWN):
        return ir.DataType(dtype)
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    name = dtype if isinstance(dtype, str) else str(dtype)
    found = _READ.get(name.lower().removeprefix("torch."))
    if found is not None:
        return found
    try:
        return ir.DataType.from_numpy(np.dtype(dtype))
    except (TypeError, ValueError):
        pass
    near = near_names(name.lower(), _SHOWN.values(), 1, 0.5)
    raise problem(
        "build/dtype",
        f"there is no dtype {name!r} in ONNX",
        where=where,
        fix=f"write {near[0]!r}" if near else f"write one of {', '.join(sorted(_SHOWN.values()))}",
    )
