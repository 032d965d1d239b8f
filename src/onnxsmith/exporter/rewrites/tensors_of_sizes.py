"""Traces `torch.tensor([x.shape[2], x.shape[3]])` with symbolic sizes; torch.export would store the example's sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite
from onnxsmith.exporter.translating.function_substitution import InPlaceOf

_Numbers = bool | int | float | torch.SymBool | torch.SymInt | torch.SymFloat
_SYMBOLS = (torch.SymBool, torch.SymInt, torch.SymFloat)


class TensorsOfSizes(Rewrite):
    """Replaces `torch.tensor` and `torch.as_tensor` by a stack of scalars if one of the numbers is a symbolic size."""

    title = "a tensor made from sizes is stacked from scalars"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(InPlaceOf({torch.tensor: _tensor, torch.as_tensor: _tensor}))
        return False


def _tensor(data: Any, dtype: torch.dtype | None = None, device: Any = None, **others: Any) -> Any:
    """Like `torch.tensor`. Returns NotImplemented for other arguments, for leaves that are not numbers, or if no number
    is symbolic."""
    leaves = list(_leaves(data))
    if any(others.values()) or not any(isinstance(leaf, _SYMBOLS) for leaf in leaves):
        return NotImplemented
    if not all(isinstance(leaf, _Numbers) for leaf in leaves):
        return NotImplemented
    return _stacked(data, dtype or _dtype(leaves), device)


def _leaves(data: Any) -> Iterator[Any]:
    if isinstance(data, list | tuple):
        for part in data:
            yield from _leaves(part)
    else:
        yield data


def _dtype(leaves: list[Any]) -> torch.dtype:
    """The dtype that torch chooses for Python numbers."""
    if any(isinstance(leaf, float | torch.SymFloat) for leaf in leaves):
        return torch.get_default_dtype()
    return torch.bool if all(isinstance(leaf, bool | torch.SymBool) for leaf in leaves) else torch.int64


def _stacked(data: Any, dtype: torch.dtype, device: Any) -> torch.Tensor:
    if not isinstance(data, list | tuple):
        return torch.scalar_tensor(data, dtype=dtype, device=device)
    if not data:
        return torch.empty(0, dtype=dtype, device=device)
    return torch.stack([_stacked(part, dtype, device) for part in data])
