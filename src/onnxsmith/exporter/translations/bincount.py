"""`bincount` with weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Bincount(Translation):
    """The weight of each number up to the greatest: float32 weights give float32, others float64.
    Of no numbers it is int64. Without weights, numbers are counted here if `minlength` is a computed size."""

    targets = ("aten::bincount",)

    def decompose(self, x: Any, weights: Any = None, minlength: int = 0) -> Any:
        if weights is None and isinstance(minlength, int):
            return NotImplemented
        if weights is None:
            return _counts(x, minlength)
        dtype = torch.float32 if weights.dtype == torch.float32 else torch.float64
        if isinstance(x.shape[0], int) and x.shape[0] == 0:
            return torch.zeros((minlength,), dtype=torch.int64)
        length = (x.amax(0).to(torch.int64) + 1).clamp(min=minlength).item()
        return torch.zeros((length,), dtype=dtype).scatter_add(0, x.to(torch.int64), weights.to(dtype))

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([3, 0, 3, 7])
        yield Sample((x, torch.rand(4)))
        yield Sample((x.int(), torch.rand(4).double(), 10))
        yield Sample((x, torch.tensor([1, 2, 3, 4]), 3))
        yield Sample((torch.zeros(0).long(), torch.zeros(0), 3))
        yield Sample((x, torch.rand(4)), dynamic={0: {0: "n"}, 1: {0: "n"}})


def _counts(x: Any, minlength: Any) -> Any:
    """How often each number occurs, up to `minlength` or the greatest number."""
    numbers = x.to(torch.int64)
    greatest = torch.cat([numbers, torch.full((1,), -1)]).amax(0) + 1
    length: Any = torch.maximum(greatest, torch.full((), minlength)).item()
    return torch.zeros((length,), dtype=torch.int64).scatter_add(0, numbers, torch.ones_like(numbers))
