"""`clamp_min`: the lower bound alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._bound import at_least, one_bound
from onnxsmith.exporter.translations.base import Sample, Translation


class ClampMin(Translation):
    """Max of the tensor and its bound."""

    targets = ("aten::clamp_min",)

    def decompose(self, x: torch.Tensor, min: Any) -> torch.Tensor:  # noqa: A002 — PyTorch's name
        return at_least(x, min)

    def samples(self) -> Iterator[Sample]:
        yield from one_bound("aten::clamp_min", min=0.5)
        yield Sample((torch.randn(3, 4), torch.randn(4)), target="aten::clamp_min.Tensor")
        yield Sample((torch.randn(3), torch.tensor(0.5)), target="aten::clamp_min.Tensor")
        yield Sample((torch.tensor([1, 5]), torch.tensor([1.5, 2.5])), target="aten::clamp_min.Tensor")
