"""`unique_consecutive`: runs of equal elements, one element each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class UniqueConsecutive(Translation):
    """A run begins where an element differs from the one before it; along an axis where any of a slice does. What is
    not asked for is empty where that is without an axis, as PyTorch has it."""

    targets = ("aten::unique_consecutive",)

    def decompose(
        self, x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        row = x.reshape(-1) if dim is None else x.transpose(0, dim)
        length = row.shape[0]
        differs = row[1:] != row[:-1]
        if differs.dim() > 1:
            differs = differs.reshape([length - 1, -1]).any(1)
        begins = torch.cat([torch.ones((1,), dtype=torch.bool), differs])
        if length == 1:  # torch takes two elements to be possible at the least
            begins = torch.cat([begins, torch.zeros_like(begins)])
        places = begins.nonzero().squeeze(1)
        found = row.index_select(0, places)
        inverse = counts = torch.empty((0,), dtype=torch.int64)
        if return_inverse or dim is not None:
            inverse = begins[:length].to(torch.int64).cumsum(0) - 1
            inverse = inverse.reshape(x.shape) if dim is None else inverse
        if return_counts or dim is not None:
            ends = torch.cat([places, torch.full((1,), length, dtype=torch.int64)])
            counts = ends[1:] - ends[:-1]
        return found if dim is None else found.transpose(0, dim), inverse, counts

    def samples(self) -> Iterator[Sample]:
        for inverse in (False, True):
            for counts in (False, True):
                x = torch.randint(0, 2, (3, 4))
                yield Sample((x, inverse, counts))
                yield Sample((x.float(), inverse, counts, 1))
                yield Sample((x[:, :1].bool(), inverse, counts, 0))
        yield Sample((torch.tensor(1.0), True, True))
        yield Sample((torch.randint(0, 2, (5, 2)), True, True, 0), dynamic={0: {0: "n"}})
        yield Sample((torch.randint(0, 2, (5, 2)), True, True), dynamic={0: {0: "n"}})
