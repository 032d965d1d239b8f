"""`cummax` and `cummin`: the extreme of what stands before an element, it included, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._scans import scan
from onnxsmith.exporter.translations._sizes import is_empty
from onnxsmith.exporter.translations.base import Sample, Translation


def running(given: torch.Tensor, dim: int, *, least: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Of equal ones the last counts, and NaN is more extreme than any number, as in PyTorch."""
    if given.dim() == 0 or is_empty(given):
        return given.clone(), torch.zeros_like(given, dtype=torch.int64)
    rows = given.movedim(dim, 0)
    if rows.dtype in (torch.bool, torch.int16):  # ONNX Runtime has no Where for them
        rows = rows.to(torch.int32)
    places = torch.arange(rows.shape[0], device=rows.device)

    def step(value: torch.Tensor, at: torch.Tensor, one: torch.Tensor, place: torch.Tensor) -> tuple[torch.Tensor, ...]:
        taken = (one <= value) if least else (one >= value)
        if one.is_floating_point():
            taken = (taken & ~value.isnan()) | one.isnan()
        return torch.where(taken, one, value), torch.where(taken, place, at)

    if rows.is_floating_point():
        worst = float("inf") if least else -float("inf")
    else:
        worst = torch.iinfo(rows.dtype).max if least else torch.iinfo(rows.dtype).min
    start = rows.new_full(rows.shape[1:], worst)
    values, where = scan(step, [start, torch.zeros_like(start, dtype=torch.int64)], rows, places)
    return values.movedim(0, dim).to(given.dtype), where.movedim(0, dim)


class Cummax(Translation):
    """A scan over values and places."""

    targets = ("aten::cummax",)

    def decompose(self, self_: Any, dim: int) -> Any:
        return running(self_, dim, least=False)

    def samples(self) -> Iterator[Sample]:
        yield from held()


def held() -> Iterator[Sample]:
    """The samples of both operators."""
    nan, inf = float("nan"), float("inf")
    yield Sample((torch.randn(5, 3), 0), dynamic={0: {0: "n"}})
    yield Sample((torch.randn(2, 5, 3, dtype=torch.float64), -2), dynamic={0: {0: "n", 2: "m"}})
    yield Sample((torch.randint(-3, 4, (4, 9)), 1))
    yield Sample((torch.randint(0, 4, (4, 9), dtype=torch.uint8), 1))
    yield Sample((torch.randint(-3, 4, (4, 9), dtype=torch.int16), 0))
    yield Sample((torch.randint(0, 2, (4, 9)).bool(), 1))
    yield Sample((torch.tensor([[-inf, inf, nan, 2.0, nan], [inf, inf, -inf, -inf, 0.0]]), 1))
    yield Sample((torch.randn(()), 0))
    yield Sample((torch.randn(3, 0), 1))
