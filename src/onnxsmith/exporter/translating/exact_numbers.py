"""Keeps Python numbers in a float64 model as exact as they are.

PyTorch's exporter makes a float32 constant of every Python float whose dtype nothing says, and casts that: 0.1 comes
out as 0.100000001. A constant that is cast at once may as well be a float64 one; cast to float32 it rounds to the same.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from onnxsmith.seams.torch import translator

_FILLED = (torch.ops.aten.full.default, torch.ops.aten.full_like.default, torch.ops.aten.scalar_tensor.default)


def exact_numbers() -> AbstractContextManager[None]:
    """Inside, a Python float that float32 does not hold, and that is cast, is a float64 constant."""
    return translator.exact_numbers(_is_float32)


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
