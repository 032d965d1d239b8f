"""Clamping with one bound. A Clip without the other one makes the largest number of the dtype of an infinity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._constants import constant
from onnxsmith.exporter.translations.base import Sample


def at_least(x: torch.Tensor, low: Any) -> torch.Tensor:
    """`x`, and `low` where it is less; `low` is a number, a size or a tensor. A NaN stays one."""
    return torch.maximum(*_of_one_dtype(x, low))


def at_most(x: torch.Tensor, high: Any) -> torch.Tensor:
    """`x`, and `high` where it is more."""
    return torch.minimum(*_of_one_dtype(x, high))


def _of_one_dtype(x: torch.Tensor, bound: Any) -> tuple[torch.Tensor, torch.Tensor]:
    dtype = torch.result_type(x, bound)
    if isinstance(bound, torch.Tensor):
        return x.to(dtype), bound.to(dtype)
    if isinstance(bound, int | float):
        return x.to(dtype), constant(bound, dtype)
    return x.to(dtype), torch.full((), bound, dtype=dtype)  # a size that is a symbol


def one_bound(target: str, **bound: float) -> Iterator[Sample]:
    """Calls with a number as the bound: infinities, NaN, integers and what becomes of their dtype, empty, 0-d."""
    nan, inf = float("nan"), float("inf")
    yield Sample((torch.randn(3, 4),), bound, target, dynamic={0: {0: "n"}})
    yield Sample((torch.tensor([nan, inf, -inf, 3e38, -3e38, 0.0]),), bound, target)
    yield Sample((torch.tensor([inf, -inf, 1.0], dtype=torch.float16),), bound, target)
    yield Sample((torch.tensor([inf, -inf, 1.0], dtype=torch.float64),), bound, target)
    yield Sample((torch.tensor([1, -5]),), bound, target)
    yield Sample((torch.tensor([1, -5], dtype=torch.int32),), dict.fromkeys(bound, 2), target)
    yield Sample((torch.tensor(inf),), bound, target)
    yield Sample((torch.zeros(0, 3),), bound, target)
