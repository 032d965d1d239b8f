"""Orthogonal polynomials by their recurrences (DLMF 18.9), computed in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations._loops import any_of, loop
from onnxsmith.exporter.translations._univariate import in_float64
from onnxsmith.exporter.translations.base import Sample, Translation, member

_MOST = 10_000
"""Limits the degree. A choice: beyond it the loop takes too long, and the result is NaN."""


def polynomial(x: Any, n: Any, first: Callable[[Any], Any], following: Callable[..., Any]) -> torch.Tensor:
    """Returns p_n(x) from p_0 = 1, p_1 = `first(x)` and p_(k+1) = `following(k, x, p_k, p_(k-1))`. 0 for n < 0, NaN for
    n > 10,000.

    x and n are numbers or tensors that broadcast; `n` is truncated to an integer.
    """
    given, dtype = in_float64(x, n)
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


class _Polynomial(Translation):
    """Computes a family of polynomials by its first member and its recurrence, as `polynomial` takes them."""

    first: ClassVar[Callable[[Any], Any]]
    following: ClassVar[Callable[..., Any]]

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, type(self).first, type(self).following)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([0.5, -0.25, 1.25, 0.0, 1.0, -1.0, -1.5, 0.75])
        for n in (0, 1, 2, 5):
            yield Sample((x, torch.full((8,), n)))
        yield Sample((x[:, None], torch.tensor([0, 1, 2, 3, 6, -1])), dynamic={0: {0: "n"}})
        yield Sample((x.double(), torch.tensor(4)))
        yield Sample((torch.tensor(0.5), torch.tensor(3)))
        yield Sample((torch.zeros(0, 3), torch.tensor([1, 2, 3])))


def _polynomial(name: str, first: Callable[[Any], Any], following: Callable[..., Any]) -> type[Translation]:
    """Returns the translation of a family in `torch.special`, an entry of the table below: its name there, p_1 of x,
    and p_(k+1) of k, x, p_k and p_(k-1) by the recurrence of DLMF table 18.9.1."""
    class_name = name.title().replace("_", "")
    return member(_Polynomial, class_name, __name__, f"aten::special_{name}", first=first, following=following)


def _chebyshev(k: Any, x: Any, now: Any, before: Any) -> Any:
    return 2 * x * now - before


# T, U, V and W are of the first, second, third and fourth kind.
ChebyshevPolynomialT = _polynomial("chebyshev_polynomial_t", lambda x: x, _chebyshev)
ChebyshevPolynomialU = _polynomial("chebyshev_polynomial_u", lambda x: 2 * x, _chebyshev)
ChebyshevPolynomialV = _polynomial("chebyshev_polynomial_v", lambda x: 2 * x - 1, _chebyshev)
ChebyshevPolynomialW = _polynomial("chebyshev_polynomial_w", lambda x: 2 * x + 1, _chebyshev)


def _shifted(k: Any, x: Any, now: Any, before: Any) -> Any:
    return (4 * x - 2) * now - before


# These are the same four of y = 2x - 1: T₁ = y, U₁ = 2y, V₁ = 2y - 1, W₁ = 2y + 1.
ShiftedChebyshevPolynomialT = _polynomial("shifted_chebyshev_polynomial_t", lambda x: 2 * x - 1, _shifted)
ShiftedChebyshevPolynomialU = _polynomial("shifted_chebyshev_polynomial_u", lambda x: 4 * x - 2, _shifted)
ShiftedChebyshevPolynomialV = _polynomial("shifted_chebyshev_polynomial_v", lambda x: 4 * x - 3, _shifted)
ShiftedChebyshevPolynomialW = _polynomial("shifted_chebyshev_polynomial_w", lambda x: 4 * x - 1, _shifted)

# H are the physicists' polynomials, He the statisticians'.
HermitePolynomialH = _polynomial(
    "hermite_polynomial_h", lambda x: 2 * x, lambda k, x, now, before: 2 * x * now - 2 * k * before
)
HermitePolynomialHe = _polynomial("hermite_polynomial_he", lambda x: x, lambda k, x, now, before: x * now - k * before)
LaguerrePolynomialL = _polynomial(
    "laguerre_polynomial_l", lambda x: 1 - x, lambda k, x, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1)
)
LegendrePolynomialP = _polynomial(
    "legendre_polynomial_p", lambda x: x, lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1)
)
