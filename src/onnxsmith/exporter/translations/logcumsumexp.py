"""`logcumsumexp`: logarithms of running sums of exponentials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._scans import scan
from onnxsmith.exporter.translations._sizes import is_empty
from onnxsmith.exporter.translations.base import Sample, Translation


class Logcumsumexp(Translation):
    """A scan with log(eᵃ + eᵇ) = max + log1p(e^(min - max)), which needs no exponential of anything large. Two equal
    infinities are themselves."""

    targets = ("aten::logcumsumexp",)

    def decompose(self, self_: Any, dim: int) -> Any:
        if self_.dim() == 0 or is_empty(self_):
            return self_.clone()
        if self_.dtype.is_complex:
            return NotImplemented
        rows = self_.movedim(dim, 0)
        (found,) = scan(_added, [rows.new_full(rows.shape[1:], -float("inf"))], rows)
        return found.movedim(0, dim)

    def samples(self) -> Iterator[Sample]:
        nan, inf = float("nan"), float("inf")
        yield Sample((torch.randn(5, 3), 0), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(2, 5, 3) * 100, -2), dynamic={0: {0: "n", 2: "m"}})
        yield Sample((torch.randn(4, 3, dtype=torch.float64), 1))
        yield Sample((torch.tensor([[-inf, -inf, 2.0, -inf, inf, inf, 1.0], [1.0, nan, 2.0, inf, 0.0, 0.0, 0.0]]), 1))
        yield Sample((torch.randn(()), 0))
        yield Sample((torch.randn(3, 0), 1))


def _added(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor]:
    low, high = torch.minimum(a, b), torch.maximum(a, b)
    same = (low == high) & high.isinf()
    return (torch.where(same, high, high + (torch.where(same, 0.0, low - high)).exp().log1p()),)
