"""Orthogonal polynomials by their recurrences (DLMF 18.9), of float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._loops import any_of, loop
from onnxsmith.exporter.translations.base import Sample

_MOST = 10_000
"""Largest degree; a choice: above it the loop takes too long, and the result is NaN."""


def polynomial(x: Any, n: Any, first: Callable[[Any], Any], following: Callable[..., Any]) -> torch.Tensor:
    """p_n(x) from p_0 = 1, p_1 = `first(x)` and p_(k+1) = `following(k, x, p_k, p_(k-1))`; 0 for n < 0, and NaN for n >
    10,000. `n` is cut to an integer, and the two are numbers or tensors that broadcast."""
    tensors = [one for one in (x, n) if isinstance(one, torch.Tensor)]
    dtype = torch.result_type(x, n)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    given = [
        one.to(torch.float64)
        if isinstance(one, torch.Tensor)
        else torch.full((), float(one), dtype=torch.float64, device=tensors[0].device)
        for one in (x, n)
    ]
    at, degree = torch.broadcast_tensors(*given)  # type: ignore[no-untyped-call]
    degree = degree.trunc()
    one = torch.ones_like(at)

    def step(k: torch.Tensor, now: torch.Tensor, before: torch.Tensor, *fixed: torch.Tensor) -> tuple[Any, ...]:
        here, last = fixed
        going = last > k
        return k + 1, torch.where(going, following(k, here, now, before), now), torch.where(going, now, before)

    def goes_on(k: torch.Tensor, now: torch.Tensor, before: torch.Tensor, *fixed: torch.Tensor) -> torch.Tensor:
        return any_of((fixed[1] > k) & (k < _MOST))

    start = [torch.ones((), dtype=torch.float64, device=at.device), first(at) * one, one]
    found = loop(goes_on, step, start, (at, degree))[1]
    found = torch.where(degree == 0, 1.0, torch.where(degree < 0, 0.0, found))
    found = torch.where(degree > _MOST, math.nan, found)
    return found.to(dtype)


def held() -> Iterator[Sample]:
    """The samples of each polynomial."""
    x = torch.tensor([0.5, -0.25, 1.25, 0.0, 1.0, -1.0, -1.5, 0.75])
    for n in (0, 1, 2, 5):
        yield Sample((x, torch.full((8,), n)))
    yield Sample((x[:, None], torch.tensor([0, 1, 2, 3, 6, -1])), dynamic={0: {0: "n"}})
    yield Sample((x.double(), torch.tensor(4)))
    yield Sample((torch.tensor(0.5), torch.tensor(3)))
    yield Sample((torch.zeros(0, 3), torch.tensor([1, 2, 3])))
