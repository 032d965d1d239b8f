"""`corrcoef`: the correlation of variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.cov import Cov


class Corrcoef(Translation):
    """The covariance, each row and each column divided by its standard deviation, and kept within -1 and 1."""

    targets = ("aten::corrcoef",)
    functions = (torch.corrcoef, torch.Tensor.corrcoef)

    def decompose(self, x: Any) -> Any:
        found = Cov().decompose(x)
        if found.dim() == 0:
            return found / found
        deviation = found.diagonal().sqrt()
        return (found / deviation.unsqueeze(1) / deviation.unsqueeze(0)).clamp(-1, 1)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 7),), dynamic={0: {1: "n"}}, around=torch_corrcoef)
        yield Sample((torch.randn(4, 5, dtype=torch.float64),), around=torch_corrcoef)
        yield Sample((torch.randn(6),), around=torch_corrcoef)


def torch_corrcoef(_: Any, x: torch.Tensor) -> torch.Tensor:
    """By the function, which is what a module calls."""
    return torch.corrcoef(x)
