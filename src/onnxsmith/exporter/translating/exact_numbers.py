"""Keeps Python numbers in a float64 model exact.

PyTorch's exporter writes a Python float without a known dtype as a float32 constant and casts that: 0.1 becomes
0.100000001. If the constant is cast anyway, it can be a float64 constant; a cast to float32 gives the same number.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from onnxsmith.base.seams.torch import translator

_FILLED = (torch.ops.aten.full.default, torch.ops.aten.full_like.default, torch.ops.aten.scalar_tensor.default)


def exact_numbers() -> AbstractContextManager[None]:
    """Inside, a Python float that is cast becomes a float64 constant if float32 cannot hold it exactly."""
    return translator.exact_numbers(_is_float32)


def say_dtypes(module: torch.fx.GraphModule) -> None:
    """Writes the dtype of every tensor that is filled with a number, so that the exporter casts the number."""
    for node in module.graph.nodes:
        if (
            node.target in _FILLED
            and node.kwargs.get("dtype") is None
            and isinstance(node.meta.get("val"), torch.Tensor)
        ):
            node.kwargs = {**node.kwargs, "dtype": node.meta["val"].dtype}


def _is_float32(number: float) -> bool:
    return number != number or torch.tensor(number, dtype=torch.float32).item() == number
