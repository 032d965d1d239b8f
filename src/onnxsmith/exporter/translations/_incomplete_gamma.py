"""The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x), of float64."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._gamma import lgamma
from onnxsmith.exporter.translations._loops import any_of, loop
from onnxsmith.exporter.translations.base import Sample

_MOST = 100_000
"""Largest number of iterations; elements that have not converged by then are NaN. `a` = 10⁸ near `x` takes about as
many."""
_SETTLED = 2.0**-53
_TINY = 1e-300


def lower_and_upper(a: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """P and Q. The series of P (DLMF 8.11.4) where x < a + 1, elsewhere the continued fraction of Q (DLMF 8.9.2) by the
    method of Lentz; the other one is what is missing to 1. NaN for a or x below zero, and for both 0 or both infinite.
    """
    a, x = torch.broadcast_tensors(a, x)  # type: ignore[no-untyped-call]
    plain = (a > 0) & (x > 0) & a.isfinite() & x.isfinite()
    order, at = torch.where(plain, a, 1.0), torch.where(plain, x, 1.0)
    before = (order * at.log() - at - lgamma(order)).exp()
    in_series = at < order + 1
    lower = before * _series(order, torch.where(in_series, at, order))
    upper = before * _fraction(order, torch.where(in_series, order + 1, at))
    lower, upper = torch.where(in_series, lower, 1 - upper), torch.where(in_series, 1 - lower, upper)
    nothing = (x == 0) | a.isinf()  # of the whole lies below x
    found = torch.where(plain, lower, torch.where(nothing, 0.0, 1.0))
    rest = torch.where(plain, upper, torch.where(nothing, 1.0, 0.0))
    none = (a < 0) | (x < 0) | a.isnan() | x.isnan() | ((a == 0) & (x == 0)) | (a.isinf() & x.isinf())
    return torch.where(none, math.nan, found), torch.where(none, math.nan, rest)


def _series(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Σ x^k / (a (a + 1) … (a + k))."""

    def step(k: torch.Tensor, term: torch.Tensor, total: torch.Tensor, *fixed: torch.Tensor) -> tuple[Any, ...]:
        a, x = fixed
        term = term * x / (a + k)
        return k + 1, term, total + term

    def goes_on(k: torch.Tensor, term: torch.Tensor, total: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return any_of((term > _SETTLED * total) & (k < _MOST))

    _, term, total = loop(goes_on, step, [torch.ones((), dtype=a.dtype), 1 / a, 1 / a], (a, x))
    return torch.where(term > _SETTLED * total, math.nan, total)


def _fraction(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - …)))."""

    def step(
        k: torch.Tensor, above: torch.Tensor, below: torch.Tensor, found: torch.Tensor, _: torch.Tensor, *fixed: Any
    ) -> tuple[Any, ...]:
        a, x = fixed
        part, whole = k * (a - k), x + 2 * k + 1 - a
        below = part * below + whole
        below = 1 / torch.where(below.abs() < _TINY, _TINY, below)
        above = whole + part / above
        above = torch.where(above.abs() < _TINY, _TINY, above)
        change = above * below
        return k + 1, above, below, found * change, change

    def goes_on(k: torch.Tensor, _: Any, __: Any, ___: Any, change: torch.Tensor, *____: Any) -> torch.Tensor:
        return any_of(((change - 1).abs() > 2 * _SETTLED) & (k < _MOST))

    first = x + 1 - a
    first = torch.where(first.abs() < _TINY, _TINY, first)
    start = [torch.ones((), dtype=a.dtype), torch.full_like(a, 1 / _TINY), 1 / first, 1 / first, torch.zeros_like(a)]
    *_, found, change = loop(goes_on, step, start, (a, x))
    return torch.where((change - 1).abs() > 2 * _SETTLED, math.nan, found)


def incomplete(self_: Any, other: Any, which: int) -> torch.Tensor:
    """P of the two for 0, Q for 1, in their common dtype."""
    dtype = torch.result_type(self_, other)
    return lower_and_upper(self_.to(torch.float64), other.to(torch.float64))[which].to(dtype)


def held() -> Iterator[Sample]:
    """The samples of both functions."""
    a = torch.tensor([0.1, 0.5, 1.0, 3.0, 12.5, 150.0, 0.0, float("inf"), -1.0])
    x = torch.tensor([0.01, 0.7, 1.0, 4.0, 11.0, 160.0, 0.0, float("inf")])
    yield Sample((a, x[:, None]), dynamic={1: {0: "n"}})
    yield Sample((a.double(), x.double()[:, None]))
    yield Sample((torch.tensor(2.0), torch.tensor(1.5)))
    yield Sample((torch.zeros(0, 3), torch.ones(3)))
