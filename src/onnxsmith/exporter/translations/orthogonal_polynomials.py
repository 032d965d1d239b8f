"""Orthogonal polynomials by their recurrences (DLMF 18.9), computed in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._loops import any_of, loop
from onnxsmith.exporter.translations.base import Sample, Translation

_MOST = 10_000
"""Largest degree. A choice: beyond it the loop takes too long, and the result is NaN."""


def polynomial(x: Any, n: Any, first: Callable[[Any], Any], following: Callable[..., Any]) -> torch.Tensor:
    """Returns p_n(x) from p_0 = 1, p_1 = `first(x)` and p_(k+1) = `following(k, x, p_k, p_(k-1))`. 0 for n < 0, NaN for
    n > 10,000.

    x and n are numbers or tensors that broadcast; `n` is truncated to an integer.
    """
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


def polynomial_samples() -> Iterator[Sample]:
    """Yields the samples of each polynomial."""
    x = torch.tensor([0.5, -0.25, 1.25, 0.0, 1.0, -1.0, -1.5, 0.75])
    for n in (0, 1, 2, 5):
        yield Sample((x, torch.full((8,), n)))
    yield Sample((x[:, None], torch.tensor([0, 1, 2, 3, 6, -1])), dynamic={0: {0: "n"}})
    yield Sample((x.double(), torch.tensor(4)))
    yield Sample((torch.tensor(0.5), torch.tensor(3)))
    yield Sample((torch.zeros(0, 3), torch.tensor([1, 2, 3])))


class ChebyshevPolynomialT(Translation):
    """Computes `special.chebyshev_polynomial_t` (first kind) from T₁ = x by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_chebyshev_polynomial_t",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: x, lambda k, x, now, before: 2 * x * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class ChebyshevPolynomialU(Translation):
    """Computes `special.chebyshev_polynomial_u` (second kind) from U₁ = 2x by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_chebyshev_polynomial_u",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 2 * x, lambda k, x, now, before: 2 * x * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class ChebyshevPolynomialV(Translation):
    """Computes `special.chebyshev_polynomial_v` (third kind) from V₁ = 2x - 1 by the recurrence of DLMF table
    18.9.1."""

    targets = ("aten::special_chebyshev_polynomial_v",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 2 * x - 1, lambda k, x, now, before: 2 * x * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class ChebyshevPolynomialW(Translation):
    """Computes `special.chebyshev_polynomial_w` (fourth kind) from W₁ = 2x + 1 by the recurrence of DLMF table
    18.9.1."""

    targets = ("aten::special_chebyshev_polynomial_w",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 2 * x + 1, lambda k, x, now, before: 2 * x * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class ShiftedChebyshevPolynomialT(Translation):
    """Computes `special.shifted_chebyshev_polynomial_t` from T₁ = y for y = 2x - 1 by the recurrence of DLMF table
    18.9.1."""

    targets = ("aten::special_shifted_chebyshev_polynomial_t",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 2 * x - 1, lambda k, x, now, before: (4 * x - 2) * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class ShiftedChebyshevPolynomialU(Translation):
    """Computes `special.shifted_chebyshev_polynomial_u` from U₁ = 2y for y = 2x - 1 by the recurrence of DLMF table
    18.9.1."""

    targets = ("aten::special_shifted_chebyshev_polynomial_u",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 4 * x - 2, lambda k, x, now, before: (4 * x - 2) * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class ShiftedChebyshevPolynomialV(Translation):
    """Computes `special.shifted_chebyshev_polynomial_v` from V₁ = 2y - 1 for y = 2x - 1.

    The recurrence is that of DLMF table 18.9.1.
    """

    targets = ("aten::special_shifted_chebyshev_polynomial_v",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 4 * x - 3, lambda k, x, now, before: (4 * x - 2) * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class ShiftedChebyshevPolynomialW(Translation):
    """Computes `special.shifted_chebyshev_polynomial_w` from W₁ = 2y + 1 for y = 2x - 1.

    The recurrence is that of DLMF table 18.9.1.
    """

    targets = ("aten::special_shifted_chebyshev_polynomial_w",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 4 * x - 1, lambda k, x, now, before: (4 * x - 2) * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class HermitePolynomialH(Translation):
    """Computes `special.hermite_polynomial_h` (the physicists') from H₁ = 2x by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_hermite_polynomial_h",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 2 * x, lambda k, x, now, before: 2 * x * now - 2 * k * before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class HermitePolynomialHe(Translation):
    """Computes `special.hermite_polynomial_he` (the statisticians') from He₁ = x by the recurrence of DLMF table
    18.9.1."""

    targets = ("aten::special_hermite_polynomial_he",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: x, lambda k, x, now, before: x * now - k * before)

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class LaguerrePolynomialL(Translation):
    """Computes `special.laguerre_polynomial_l` from L₁ = 1 - x by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_laguerre_polynomial_l",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(
            x, n, lambda x: 1 - x, lambda k, x, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1)
        )

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()


class LegendrePolynomialP(Translation):
    """Computes `special.legendre_polynomial_p` from P₁ = x by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_legendre_polynomial_p",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: x, lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1))

    def samples(self) -> Iterator[Sample]:
        yield from polynomial_samples()
