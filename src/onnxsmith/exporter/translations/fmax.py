"""`fmax` and `fmin`: the larger and the smaller of two numbers, of a number and NaN the number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


def beyond(a: Any, b: Any, *, least: bool) -> torch.Tensor:
    """NaN only where both are."""
    dtype = torch.result_type(a, b)
    a, b = a.to(dtype), b.to(dtype)
    if not dtype.is_floating_point:
        return torch.minimum(a, b) if least else torch.maximum(a, b)
    taken = (a <= b) if least else (a >= b)
    return torch.where(taken | b.isnan(), a, b)


class Fmax(Translation):
    """The larger; of a number and NaN the number."""

    targets = ("aten::fmax", "prims::fmax")

    def decompose(self, self_: Any, other: Any) -> Any:
        return beyond(self_, other, least=False)

    def samples(self) -> Iterator[Sample]:
        yield from held()


def held() -> Iterator[Sample]:
    """The samples of both operators."""
    nan, inf = float("nan"), float("inf")
    yield Sample((torch.randn(3, 4), torch.randn(4)), dynamic={0: {0: "n"}})
    yield Sample((torch.tensor([1.0, nan, nan, inf, -inf]), torch.tensor([nan, 2.0, nan, nan, 3.0])))
    yield Sample((torch.randn(3, dtype=torch.float64), torch.randn(2, 1)))
    yield Sample((torch.tensor([1, -5]), torch.tensor([0.5, 0.5])))
    yield Sample((torch.tensor([1, -5]), torch.tensor([3, -7], dtype=torch.int32)))
    yield Sample((torch.tensor([True, False]), torch.tensor([False, False])))
    yield Sample((torch.tensor(1.0), torch.tensor(nan)))
    yield Sample((torch.zeros(0, 3), torch.ones(3)))
