"""`kthvalue`: the k-th smallest element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._order import order
from onnxsmith.exporter.translations.base import Sample, Translation


class Kthvalue(Translation):
    """Read from the sorted row, NaN being the greatest. Of equal elements the first is named."""

    targets = ("aten::kthvalue",)

    def decompose(self, x: Any, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64)
        found = order(x, dim).narrow(dim, k - 1, 1)
        value = x.gather(dim, found)
        return (value, found) if keepdim else (value.squeeze(dim), found.squeeze(dim))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(4, 6), 2))
        yield Sample((torch.randn(4, 6), 4, 0, True))
        yield Sample((torch.tensor([float("nan"), 1.0, float("inf")]), 2))
        yield Sample((torch.tensor(2.0), 1))
        yield Sample((torch.randn(4, 6), 2), dynamic={0: {0: "n", 1: "m"}})
