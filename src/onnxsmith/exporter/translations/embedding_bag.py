"""`embedding_bag`: sums, means or maxima of the rows of a table, bag by bag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.searchsorted import search

_MEAN, _MAX = 1, 2
"""Modes as PyTorch numbers them; 0 is the sum."""


class EmbeddingBag(Translation):
    """Each index belongs to the last bag that begins at or before it. The rows are scattered into their bags; rows of
    the padding index count for nothing, and an empty bag is 0. PyTorch's own exporter writes a loop over sequences,
    which onnxruntime does not load where the number of bags is open."""

    targets = ("aten::embedding_bag", "aten::embedding_bag.padding_idx")

    def decompose(
        self,
        weight: Any,
        indices: Any,
        offsets: Any,
        scale_grad_by_freq: bool = False,
        mode: int = 0,
        sparse: bool = False,
        per_sample_weights: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:
        del scale_grad_by_freq, sparse  # of training
        starts = (offsets[:-1] if include_last_offset else offsets).to(torch.int64)
        bags, width = starts.shape[0], weight.shape[1]
        owner = search(starts, torch.arange(indices.shape[0]), True) - 1
        places = owner.unsqueeze(1).expand(-1, width)
        counts = torch.ones_like(owner)
        if padding_idx is not None:  # a negative one counts from the end
            counts = (indices != padding_idx % weight.shape[0]).to(torch.int64)
        sizes = torch.zeros((bags,), dtype=torch.int64).scatter_add(0, owner, counts)
        rows = weight.index_select(0, indices.to(torch.int64))
        is_counted = counts.unsqueeze(1) > 0
        if mode == _MAX:
            lowest = torch.full((), torch.finfo(weight.dtype).min, dtype=weight.dtype)
            begun = torch.full((bags, width), torch.finfo(weight.dtype).min, dtype=weight.dtype)
            found = begun.scatter_reduce(0, places, torch.where(is_counted, rows, lowest), "amax")
            found = torch.where(sizes.unsqueeze(1) > 0, found, torch.zeros((), dtype=weight.dtype))
        else:
            rows = rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(1)
            rows = torch.where(is_counted, rows, torch.zeros((), dtype=weight.dtype))
            found = torch.zeros((bags, width), dtype=weight.dtype).scatter_add(0, places, rows)
            if mode == _MEAN:
                found = found / sizes.clamp(min=1).unsqueeze(1).to(weight.dtype)
        return found, owner, sizes, torch.zeros_like(sizes)

    def samples(self) -> Iterator[Sample]:
        table, indices = torch.randn(9, 4), torch.tensor([1, 0, 8, 3, 3, 0])
        offsets = torch.tensor([0, 2, 2, 5])
        for mode in (0, _MEAN, _MAX):
            yield Sample((table, indices, offsets, False, mode), around=first)
            given = (table, indices, offsets, False, mode, False, None, False, 0)
            yield Sample(given, {}, self.targets[1], around=first)
            yield Sample(given, {}, self.targets[1], {1: {0: "n"}, 2: {0: "bags"}}, around=first)
        weights = torch.rand(6)
        yield Sample((table, indices, offsets, False, 0, False, weights, True, -1), {}, self.targets[1], around=first)
        yield Sample((table, indices.int(), offsets.int()), around=first)


def first(operator: Callable[..., Any], *args: Any) -> Any:
    """The bags alone: the other results are for the gradient."""
    return operator(*args)[0]
