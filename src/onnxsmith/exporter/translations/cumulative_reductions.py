"""Cumulative extremes, products and logarithms of sums, each computed by torch's scan, which becomes ONNX's Scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations._loops import own_copy
from onnxsmith.exporter.translations._tensors import is_empty
from onnxsmith.exporter.translations.base import Sample, Translation, member


def along(x: torch.Tensor, dim: int, start: Callable[..., torch.Tensor], step: Callable[..., Any]) -> Any:
    """Returns the states of a scan of `x` along `dim`; `NotImplemented` for complex numbers. `start(x, shape)` returns
    the first state."""
    if x.dim() == 0 or is_empty(x):
        return x.clone()
    if x.dtype.is_complex:
        return NotImplemented
    rows = x.movedim(dim, 0)
    (found,) = scan(step, [start(rows, rows.shape[1:])], rows)
    return found.movedim(0, dim)


def scan(step: Callable[..., Any], state: Sequence[torch.Tensor], *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Runs along the first axis of `tensors`, of which there is at least one, and returns the states after each slice,
    stacked. `step(*state, *slices)` returns the next state as a tuple."""

    def body(*given: torch.Tensor) -> list[torch.Tensor]:
        following = [own_copy(one) for one in step(*given)]
        return [*following, *(one.clone() for one in following)]

    start = [own_copy(one) for one in state]
    found = torch.ops.higher_order.scan(body, start, [own_copy(one) for one in tensors], ())
    return tuple(found[len(start) :])


class _RunningExtreme(Translation):
    """Computes the largest or the smallest element so far and its index, by a scan over values and indices.

    As in PyTorch, the last of equal elements is chosen, and NaN is more extreme than any number.
    """

    is_least: ClassVar[bool]

    def decompose(self, self_: Any, dim: int) -> Any:
        if self_.dim() == 0 or is_empty(self_):
            return self_.clone(), torch.zeros_like(self_, dtype=torch.int64)
        rows = self_.movedim(dim, 0)
        if rows.dtype in (torch.bool, torch.int16):  # ONNX Runtime has no Where for them
            rows = rows.to(torch.int32)
        places = torch.arange(rows.shape[0], device=rows.device)

        def step(value: torch.Tensor, at: torch.Tensor, one: torch.Tensor, place: torch.Tensor) -> tuple[Any, ...]:
            taken = (one <= value) if self.is_least else (one >= value)
            if one.is_floating_point():
                # once NaN, the extreme stays NaN; only a later NaN changes its index
                taken = (taken & ~value.isnan()) | one.isnan()
            return torch.where(taken, one, value), torch.where(taken, place, at)

        if rows.is_floating_point():
            worst = float("inf") if self.is_least else -float("inf")
        else:
            worst = torch.iinfo(rows.dtype).max if self.is_least else torch.iinfo(rows.dtype).min
        start = rows.new_full(rows.shape[1:], worst)
        values, where = scan(step, [start, torch.zeros_like(start, dtype=torch.int64)], rows, places)
        return values.movedim(0, dim).to(self_.dtype), where.movedim(0, dim)

    def samples(self) -> Iterator[Sample]:
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


Cummax = member(_RunningExtreme, "Cummax", __name__, "aten::cummax", is_least=False)
Cummin = member(_RunningExtreme, "Cummin", __name__, "aten::cummin", is_least=True)


class Cumprod(Translation, targets="aten::cumprod"):
    """Computes `cumprod`, running products, by a scan in PyTorch's order. Integers and bools multiply as int64."""

    def decompose(self, self_: Any, dim: int, *, dtype: torch.dtype | None = None) -> Any:
        if dtype is None:
            whole = not self_.dtype.is_floating_point and not self_.dtype.is_complex
            dtype = torch.int64 if whole else self_.dtype
        return along(self_.to(dtype), dim, torch.Tensor.new_ones, lambda so_far, one: (so_far * one,))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(5, 3), 0), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(2, 5, 3), -2), dynamic={0: {0: "n", 2: "m"}})
        yield Sample((torch.randint(-3, 4, (4, 3), dtype=torch.int32), 1))
        yield Sample((torch.tensor([[True, False], [True, True]]), 1))
        yield Sample((torch.randn(4, 3), 1), {"dtype": torch.float64})
        yield Sample((torch.randn(()), 0))
        yield Sample((torch.randn(3, 0), 1))
        yield Sample((torch.randn(0, 3), 1))


class Logcumsumexp(Translation, targets="aten::logcumsumexp"):
    """Computes `logcumsumexp`, logarithms of running sums of exponentials, by a scan.

    log(eᵃ + eᵇ) = max + log1p(e^(min - max)) needs no exponential of a large number. The sum of two equal infinities is
    that infinity.
    """

    def decompose(self, self_: Any, dim: int) -> Any:
        return along(self_, dim, lambda rows, shape: rows.new_full(shape, -float("inf")), _added)

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
