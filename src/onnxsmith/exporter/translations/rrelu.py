"""`rrelu`: a ReLU with a slope drawn at random."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Rrelu(Translation):
    """In training each negative element has a slope of its own, even between two bounds, else their mean. Gives the
    slopes too, 1 for what is not negative."""

    targets = ("aten::rrelu_with_noise_functional",)

    def decompose(
        self, x: Any, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, _: Any = None
    ) -> Any:
        if not training:
            return torch.where(x > 0, x, x * ((lower + upper) / 2)), noise.clone()
        slope = torch.where(x > 0, torch.ones((), dtype=x.dtype), torch.rand_like(x) * (upper - lower) + lower)
        return x * slope, slope

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), torch.zeros(3, 4), 0.1, 0.3, False))
        yield Sample((torch.randn(3, 4), torch.zeros(3, 4), 0.2, 0.2, True))
        yield Sample((torch.randn(3, 4), torch.zeros(3, 4)), dynamic={0: {0: "n"}, 1: {0: "n"}})
