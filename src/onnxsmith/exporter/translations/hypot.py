"""`hypot`: the length of a vector with two components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Hypot(Translation):
    """m·√((a/m)² + (b/m)²), m the larger of both, so that no square over- or underflows. Infinite if either is, be the
    other NaN (C's `hypot`)."""

    targets = ("aten::hypot", "prims::hypot")

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        a, b = self_.to(dtype).abs(), other.to(dtype).abs()
        most = torch.maximum(a, b)
        unit = torch.where((most == 0) | most.isinf(), 1.0, most)
        first, second = a / unit, b / unit
        return torch.where(a.isinf() | b.isinf(), float("inf"), most * (first * first + second * second).sqrt())

    def samples(self) -> Iterator[Sample]:
        nan, inf = float("nan"), float("inf")
        yield Sample((torch.randn(3, 4), torch.randn(4)), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(3, dtype=torch.float64), torch.randn(2, 1)))
        yield Sample((torch.tensor([inf, nan, 0.0, -3.0, 1e30]), torch.tensor([nan, 1.0, 0.0, 4.0, -1e30])))
        yield Sample((torch.tensor(3.0), torch.tensor(-4.0)))
        yield Sample((torch.zeros(0, 3), torch.ones(3)))
