"""`unfold_backward`: windows added up where they overlap, which `istft` is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class UnfoldBackward(Translation):
    """Adds every element of every window at its position in the result."""

    targets = ("aten::unfold_backward",)

    def decompose(self, grad_in: Any, input_sizes: Sequence[Any], dim: int, size: int, step: int) -> Any:
        if not input_sizes:
            return grad_in.squeeze(0)
        dim = dim % len(input_sizes)
        starts = torch.arange(grad_in.shape[dim], device=grad_in.device) * step
        places = (starts.unsqueeze(1) + torch.arange(size, device=grad_in.device)).reshape(-1)
        windows = grad_in.movedim(-1, dim + 1).flatten(dim, dim + 1)
        return torch.index_add(grad_in.new_zeros(list(input_sizes)), dim, places, windows)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 5, 4), [2, 12], 1, 4, 2))
        yield Sample((torch.randn(3, 2, 4, dtype=torch.float64), [8, 2], 0, 4, 2))
        yield Sample((torch.randn(2, 3, 2), [2, 11], -1, 2, 4))
