"""`polygamma`: derivatives of the digamma function."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._gamma import digamma, hurwitz
from onnxsmith.exporter.translations.base import Sample, Translation


class Polygamma(Translation):
    """(-1)ⁿ⁺¹·n!·ζ(n + 1, x) (DLMF 25.11.12), but for the first, which PyTorch has a shorter way for."""

    targets = ("aten::polygamma", "aten::special_polygamma")

    def decompose(self, n: int, self_: Any) -> Any:
        dtype = self_.dtype if self_.is_floating_point() else torch.get_default_dtype()
        x = self_.to(torch.float64)
        if n == 0:
            return digamma(x).to(dtype)
        if n == 1:
            return _first(x).to(dtype)
        order = torch.full((), n + 1.0, dtype=torch.float64, device=x.device)
        return (hurwitz(order, x) * ((-1.0) ** (n + 1) * float(math.factorial(n)))).to(dtype)

    def samples(self) -> Iterator[Sample]:
        values = torch.tensor([0.25, 1.0, 3.5, 12.0, 0.75, -1.25, -3.5])
        for n in (0, 1, 2, 3, 7):
            yield Sample((n, values))
        yield Sample((1, values.double()))
        yield Sample((2, values.reshape(-1, 1)), dynamic={0: {0: "n"}})
        yield Sample((2, torch.tensor([1, 2, 3])))
        yield Sample((1, torch.tensor(0.3)))
        yield Sample((2, torch.zeros(0, 3)))


def _first(x: torch.Tensor) -> torch.Tensor:
    """Six steps of f(x) = 1/x² + f(x + 1), then three terms of the asymptotic series (DLMF 5.15.8): in float64 nine
    digits, the same as PyTorch's. Below ½ the reflection (DLMF 5.15.6)."""
    low = x < 0.5
    at = torch.where(low, 1 - x, x)
    found = torch.zeros_like(x)
    for _ in range(6):
        found = found + 1 / (at * at)
        at = at + 1
    inverse = 1 / (at * at)
    found = found + (1 + 1 / (2 * at) + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42)))) / at
    sine = ((x - x.round()) * math.pi).sin()
    return torch.where(low, math.pi**2 / (sine * sine) - found, found)
