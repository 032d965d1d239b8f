"""Keeps Python numbers in a float64 model as exact as they are.

PyTorch's exporter makes a float32 constant of every Python float whose dtype nothing says, and casts that: 0.1 comes
out as 0.100000001. A constant that is cast at once may as well be a float64 one; cast to float32 it rounds to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import onnx_ir as ir
import torch
from torch.onnx._internal.exporter import _building

_CAST = (("input", "T1"), ("s", ""), ("fill_value", ""))
"""What is cast, by its name and its type's: of Cast and CastLike, `scalar_tensor`, `full` and `full_like`."""
_FILLED = (torch.ops.aten.full.default, torch.ops.aten.full_like.default, torch.ops.aten.scalar_tensor.default)


@contextmanager
def exact_numbers() -> Iterator[None]:
    """Inside, a Python float that float32 does not hold, and that is cast, is a float64 constant."""
    determine = _building._determine_input_dtype

    def exact(param: ir.schemas.Parameter, arg: Any, type_binding: Mapping[Any, Any]) -> ir.DataType:
        found = determine(param, arg, type_binding)
        is_cast = any(param.name == name and kind in ("", param.type_constraint.name) for name, kind in _CAST)
        if is_cast and isinstance(arg, float) and found == ir.DataType.FLOAT and not _is_float32(arg):
            return ir.DataType.DOUBLE
        return found

    with mock.patch.object(_building, "_determine_input_dtype", exact):
        yield


def say_dtypes(module: torch.fx.GraphModule) -> None:
    """Gives every tensor that is filled with a number the dtype it has, so that the number is cast."""
    for node in module.graph.nodes:
        if (
            node.target in _FILLED
            and node.kwargs.get("dtype") is None
            and isinstance(node.meta.get("val"), torch.Tensor)
        ):
            node.kwargs = {**node.kwargs, "dtype": node.meta["val"].dtype}


def _is_float32(number: float) -> bool:
    return number != number or torch.tensor(number, dtype=torch.float32).item() == number
