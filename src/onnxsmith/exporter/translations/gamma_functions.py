"""The gamma function's logarithm and derivatives, and the incomplete gamma functions, computed in float64.

The regularised incomplete gamma functions are P(a, x) and Q(a, x) = 1 - P(a, x).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import mpmath
import torch

from onnxsmith.exporter.translations._loops import any_of, loop
from onnxsmith.exporter.translations._univariate import in_float64, piecewise, univariate
from onnxsmith.exporter.translations.base import Sample, Translation


def lgamma(x: torch.Tensor) -> torch.Tensor:
    """Returns log|Γ(x)|.

    From 8 by Stirling's series (DLMF 5.11.1), below by (x - 1)(x - 2) times a smooth function. Near 0 it uses Γ(x + 1)
    = x·Γ(x), and below 0 the reflection formula (DLMF 5.5.3).
    """
    right = torch.where(x < 0, 1 - x, x)
    small = right < 0.5
    moved = torch.where(small, right + 1, right)
    large = moved.clamp(min=8)
    far = (large - 0.5) * large.log() - large + 0.5 * math.log(2 * math.pi)
    far = torch.where(large.isinf(), math.inf, far + piecewise(_stirling, 1 / (large * large), 0, 1 / 64, 1) / large)
    near = (moved - 1) * (moved - 2) * piecewise(_between, moved, 0.5, 8, 64)
    found = torch.where(moved < 8, near, far) - torch.where(small, right, 1.0).log()
    reflected = (math.pi / ((x - x.round()) * math.pi).sin().abs()).log() - found
    return torch.where(x.isinf(), math.inf, torch.where(x < 0, reflected, found))


def digamma(x: torch.Tensor) -> torch.Tensor:
    """Returns the derivative of log Γ, by the same three formulas as `lgamma` (DLMF 5.11.2, 5.5.2, 5.5.4). NaN at
    negative integers."""
    right = torch.where(x < 0, 1 - x, x)
    small = right < 1
    moved = torch.where(small, right + 1, right)
    large = moved.clamp(min=8)
    inverse = 1 / (large * large)
    far = large.log() - 0.5 / large - inverse * piecewise(_slope, inverse, 0, 1 / 64, 1)
    found = torch.where(moved < 8, piecewise(mpmath.digamma, moved, 1, 8, 48), far)
    found = found - torch.where(small, 1 / right, 0.0)
    angle = (x - x.trunc()) * math.pi
    reflected = found - math.pi * angle.cos() / angle.sin()
    return torch.where(x < 0, torch.where(x == x.trunc(), math.nan, reflected), found)


def hurwitz(s: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Returns ζ(s, q) = Σ (q + k)^-s. Infinite for s = 1 and at poles, NaN for s < 1 and where a power of a negative
    number is not real.

    For q < 0 the negative terms q + k have the sizes a, a + 1, …, -q for a = trunc(q) - q. Their sum is ±(ζ(s, a) -
    ζ(s, 1 - q)). The positive terms add up to ζ(s, 1 - a).
    """
    s, q = torch.broadcast_tensors(s, q)  # type: ignore[no-untyped-call]
    negative = q < 0
    below = torch.where(negative, q.trunc() - q, 1.0)
    places = torch.stack([torch.where(negative, 1 - below, q), below, 1 - q])
    above, to_zero, beyond = _right_hurwitz(s, places).unbind(0)
    sign = torch.where(s % 2 == 0, 1.0, -1.0)
    found = torch.where(negative, above + sign * (to_zero - beyond), above)
    found = torch.where((q <= 0) & (s != s.floor()), math.nan, found)
    found = torch.where((q <= 0) & (q == q.floor()), math.inf, found)
    return torch.where(s == 1, math.inf, torch.where(s < 1, math.nan, found))


def _right_hurwitz(s: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Returns ζ(s, q) for positive q: nine terms, and from q + 9 the Euler-Maclaurin formula (DLMF 25.11.5)."""
    found = torch.zeros_like(q)
    for k in range(9):
        found = found + (q + k) ** -s
    at = q + 9
    power = at**-s
    found = found + power * at / (s - 1) + 0.5 * power
    factor, divisor = s, at
    for k in range(1, 13):
        found = found + float(mpmath.bernoulli(2 * k) / mpmath.factorial(2 * k)) * factor * power / divisor
        factor = factor * (s + (2 * k - 1)) * (s + 2 * k)
        divisor = divisor * at * at
    return found


def _stirling(t: Any) -> Any:
    x = 1 / mpmath.sqrt(t)
    return x * (mpmath.loggamma(x) - (x - 0.5) * mpmath.log(x) + x - mpmath.log(2 * mpmath.pi) / 2)


def _slope(t: Any) -> Any:
    x = 1 / mpmath.sqrt(t)
    return (mpmath.log(x) - 1 / (2 * x) - mpmath.digamma(x)) / t


def _between(x: Any) -> Any:
    return mpmath.loggamma(x) / ((x - 1) * (x - 2))


_INF, _NAN = float("inf"), float("nan")
_LGAMMA = (1.0, 2.5, 3.0, -1.5, 0.0, 0.1, 1e-9, 7.5, 20.0, 1e5, -2.0, -0.3, -12.7, _INF, -_INF, _NAN)
_DIGAMMA = (1.0, 2.5, 3.0, -1.5, 0.0, -0.0, 0.1, 7.5, 20.0, 1e5, -2.0, -0.3, -12.7, _INF, _NAN)
_DIGAMMA_TARGETS = ("aten::digamma", "aten::special_digamma", "aten::special_psi", "prims::digamma")
Lgamma = univariate("Lgamma", ("aten::lgamma", "aten::special_gammaln", "prims::lgamma"), lgamma, _LGAMMA)
Digamma = univariate("Digamma", _DIGAMMA_TARGETS, digamma, _DIGAMMA)


class Polygamma(Translation, targets=("aten::polygamma", "aten::special_polygamma")):
    """Computes `polygamma`, derivatives of the digamma function, as (-1)ⁿ⁺¹·n!·ζ(n + 1, x) (DLMF 25.11.12).

    The first derivative has a shorter form, PyTorch's own.
    """

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
    """Returns the first derivative of digamma: six steps of f(x) = 1/x² + f(x + 1), then three terms of the asymptotic
    series (DLMF 5.15.8). Below ½ it uses the reflection formula (DLMF 5.15.6). In float64 nine digits are right, as in
    PyTorch; at a pole, such as -80, the result is as large as the rounding of πx makes it, also as in PyTorch."""
    low = x < 0.5
    at = torch.where(low, 1 - x, x)
    found = torch.zeros_like(x)
    for _ in range(6):
        found = found + 1 / (at * at)
        at = at + 1
    inverse = 1 / (at * at)
    found = found + (1 + 1 / (2 * at) + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42)))) / at
    sine = (x * math.pi).sin()
    return torch.where(low, math.pi**2 / (sine * sine) - found, found)


class Zeta(Translation, targets=("aten::special_zeta", "prims::zeta")):
    """Computes `special.zeta`, the Hurwitz zeta function, by `hurwitz` in float64."""

    def decompose(self, self_: Any, other: Any) -> Any:
        (s, q), dtype = in_float64(self_, other)
        return hurwitz(s, q).to(dtype)

    def samples(self) -> Iterator[Sample]:
        s = torch.tensor([1.5, 2.0, 3.0, 10.0, 1.0, 0.5])
        q = torch.tensor([0.5, 1.0, 7.5, 30.0, 0.0, -1.0])
        yield Sample((s, q[:, None]), dynamic={1: {0: "n"}})
        yield Sample((s.double(), q.double()[:, None]))
        yield Sample((torch.tensor([2.0, 3.0]), torch.tensor([[-0.5], [-7.3]])))
        below = torch.tensor([[-2345.25], [-1e-9], [-5000.875]])
        yield Sample((torch.tensor([2.0, 3.0, 4.0]).double(), below.double()))
        yield Sample((torch.tensor([2, 3]), torch.tensor([4, 5])))
        yield Sample((s, 2.5), target="aten::special_zeta.other_scalar")
        yield Sample((2.5, q.abs() + 1), target="aten::special_zeta.self_scalar")
        yield Sample((torch.tensor(2.0), torch.tensor(1.0)))
        yield Sample((torch.zeros(0, 3), torch.ones(3)))


_MOST = 100_000
"""Limits the iterations. Elements that have not converged by then are NaN. `a` = 10⁸ near `x` takes about as
many."""
_SETTLED = 2.0**-53
_TINY = 1e-300


def lower_and_upper(a: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns P(a, x) and Q(a, x). NaN if a or x is below zero, or if both are 0 or both infinite.

    For x < a + 1 it computes the series of P (DLMF 8.11.4), elsewhere the continued fraction of Q (DLMF 8.9.2) by
    Lentz's method. The other function is 1 minus the result.
    """
    a, x = torch.broadcast_tensors(a, x)  # type: ignore[no-untyped-call]
    plain = (a > 0) & (x > 0) & a.isfinite() & x.isfinite()
    order, at = torch.where(plain, a, 1.0), torch.where(plain, x, 1.0)
    before = (order * at.log() - at - lgamma(order)).exp()
    in_series = at < order + 1
    lower = before * _lower_series(order, torch.where(in_series, at, order))
    upper = before * _upper_fraction(order, torch.where(in_series, order + 1, at))
    lower, upper = torch.where(in_series, lower, 1 - upper), torch.where(in_series, 1 - lower, upper)
    nothing = (x == 0) | a.isinf()  # then P is 0
    found = torch.where(plain, lower, torch.where(nothing, 0.0, 1.0))
    rest = torch.where(plain, upper, torch.where(nothing, 1.0, 0.0))
    none = (a < 0) | (x < 0) | a.isnan() | x.isnan() | ((a == 0) & (x == 0)) | (a.isinf() & x.isinf())
    return torch.where(none, math.nan, found), torch.where(none, math.nan, rest)


def _lower_series(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Returns Σ x^k / (a (a + 1) … (a + k))."""

    def step(k: torch.Tensor, term: torch.Tensor, total: torch.Tensor, *fixed: torch.Tensor) -> tuple[Any, ...]:
        a, x = fixed
        term = term * x / (a + k)
        return k + 1, term, total + term

    def goes_on(k: torch.Tensor, term: torch.Tensor, total: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return any_of((term > _SETTLED * total) & (k < _MOST))

    _, term, total = loop(goes_on, step, [torch.ones((), dtype=a.dtype), 1 / a, 1 / a], (a, x))
    return torch.where(term > _SETTLED * total, math.nan, total)


def _upper_fraction(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Returns 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - …)))."""

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


class _Incomplete(Translation):
    """Computes a regularised incomplete gamma function by `lower_and_upper` in float64, in the common dtype of both
    arguments."""

    kernel_error = 1e-9
    which: ClassVar[int]
    """Chooses P(a, x) by 0, Q(a, x) by 1."""

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        return lower_and_upper(self_.to(torch.float64), other.to(torch.float64))[self.which].to(dtype)

    def samples(self) -> Iterator[Sample]:
        a = torch.tensor([0.1, 0.5, 1.0, 3.0, 12.5, 150.0, 0.0, float("inf"), -1.0])
        x = torch.tensor([0.01, 0.7, 1.0, 4.0, 11.0, 160.0, 0.0, float("inf")])
        yield Sample((a, x[:, None]), dynamic={1: {0: "n"}})
        yield Sample((a.double(), x.double()[:, None]))
        yield Sample((torch.tensor(2.0), torch.tensor(1.5)))
        yield Sample((torch.zeros(0, 3), torch.ones(3)))


class Igamma(_Incomplete, targets=("aten::igamma", "prims::igamma")):
    """Computes `igamma`, which is P(a, x)."""

    which = 0


class Igammac(_Incomplete, targets=("aten::igammac", "prims::igammac")):
    """Computes `igammac`, which is Q(a, x)."""

    which = 1
