"""`index_reduce`: slices reduced into those that an index names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._scattering import scattered
from onnxsmith.exporter.translations.base import Sample, Translation


class IndexReduce(Translation):
    """`scatter_reduce` with one index for each slice."""

    targets = ("aten::index_reduce",)

    def decompose(self, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
        if index.numel() == 0:
            return x.clone()
        if x.dim() == 0:
            return scattered(x, 0, index, source, reduce, include_self)
        sizes = [1] * x.dim()
        sizes[dim] = -1
        return scattered(x, dim, index.reshape(sizes).expand(source.shape), source, reduce, include_self)

    def samples(self) -> Iterator[Sample]:
        index = torch.tensor([0, 4, 2, 0])
        for how in ("prod", "mean", "amax", "amin"):
            for own in (True, False):
                yield Sample((torch.randn(5, 3), 0, index, torch.randn(4, 3), how), {"include_self": own})
                integers = (torch.randint(-9, 9, (3, 5)), -1, index, torch.randint(-9, 9, (3, 4)), how)
                yield Sample(integers, {"include_self": own})
            yield Sample((torch.tensor(2.0), 0, torch.tensor(0), torch.tensor(3.0), how))
            yield Sample((torch.randn(3, 5), 1, index, torch.randn(3, 4), how), dynamic={0: {0: "n"}, 2: {0: "n"}})
