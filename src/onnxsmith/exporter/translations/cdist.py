"""`cdist`: distances between the rows of two matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Cdist(Translation):
    """The p-norm of the difference of every two rows. For p = 2 and many rows PyTorch uses a matrix product, which
    suffers cancellation for close rows; this translation always computes the difference."""

    targets = ("aten::cdist", "aten::_cdist_forward", "aten::_euclidean_dist")

    def decompose(self, x1: Any, x2: Any, p: float = 2.0, compute_mode: int | None = None) -> Any:
        difference = (x1.unsqueeze(-2) - x2.unsqueeze(-3)).abs()
        if p == 0:
            return (difference != 0).to(difference.dtype).sum(-1)
        if p == 1:
            return difference.sum(-1)
        if p == float("inf"):
            return difference.amax(-1) if difference.shape[-1] else difference.sum(-1)
        if p == 2:
            return (difference * difference).sum(-1).sqrt()
        return difference.pow(p).sum(-1).pow(1 / p)

    def samples(self) -> Iterator[Sample]:
        for p in (0.0, 1.0, 2.0, 2.5, float("inf")):
            yield Sample((torch.randn(2, 5, 3), torch.randn(2, 4, 3), p), dynamic={0: {0: "n", 1: "p"}, 1: {0: "n"}})
        yield Sample((torch.randn(3, 0), torch.randn(4, 0), 2.0))
        yield Sample((torch.randn(3, 1, 5, 2), torch.randn(4, 6, 2), 2.0))
        yield Sample((torch.randn(40, 3), torch.randn(30, 3), 2.0, 1), dynamic={0: {0: "n"}, 1: {0: "m"}})
