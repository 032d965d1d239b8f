"""`bincount` with weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Bincount(Translation):
    """The weight of each number up to the greatest: float32 weights give float32, others float64.
    Of no numbers it is int64."""

    targets = ("aten::bincount",)

    def decompose(self, x: Any, weights: Any = None, minlength: int = 0) -> Any:
        if weights is None:
            return NotImplemented
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
