"""`pdist`: distances between all pairs of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.cdist import Cdist


class Pdist(Translation):
    """`cdist` of the rows with themselves, of which what stands above the diagonal is read."""

    targets = ("aten::_pdist_forward",)

    def decompose(self, x: Any, p: float = 2.0) -> Any:
        count = x.shape[0]
        first, second = torch.triu_indices(count, count, 1)
        return Cdist().decompose(x[first].unsqueeze(1), x[second].unsqueeze(1), p).reshape(-1)

    def samples(self) -> Iterator[Sample]:
        for p in (0.0, 1.0, 2.0, 2.5, float("inf")):
            yield Sample((torch.randn(5, 3), p))
        yield Sample((torch.randn(5, 3, dtype=torch.float64), 2.0), dynamic={0: {1: "k"}})
        yield Sample((torch.randn(1, 3), 2.0))
