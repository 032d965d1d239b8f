"""`clamp_max`: the upper bound alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._bound import at_most, one_bound
from onnxsmith.exporter.translations.base import Sample, Translation


class ClampMax(Translation):
    """Min of the tensor and its bound."""

    targets = ("aten::clamp_max",)

    def decompose(self, x: torch.Tensor, max: Any) -> torch.Tensor:  # noqa: A002 — PyTorch's name
        return at_most(x, max)

    def samples(self) -> Iterator[Sample]:
        yield from one_bound("aten::clamp_max", max=0.5)
        yield Sample((torch.randn(3, 4), torch.randn(4)), target="aten::clamp_max.Tensor")
        yield Sample((torch.randn(3), torch.tensor(0.5)), target="aten::clamp_max.Tensor")
        yield Sample((torch.tensor([1, 5]), torch.tensor([1.5, 2.5])), target="aten::clamp_max.Tensor")
