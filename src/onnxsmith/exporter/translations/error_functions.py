"""Relatives of the error function, in float64: scaled complement, complement, quantiles of the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import torch

from onnxsmith.exporter.translations._univariate import Univariate, piecewise, univariate

_CENTRE = 1 - 2 * math.exp(-2)
"""Separates two series: of the inverse up to this argument, a power series in the argument; above it, one in
√(-2·log(1 - argument))."""


def erfcx(x: torch.Tensor) -> torch.Tensor:
    """Returns e^x²·erfc(x). It falls as 1/x, so it is smooth in 4/(4 + x). Below zero, erfc(-x) = 2 - erfc(x) is
    used."""
    place = 4 / (4 + x.abs())
    right = place * piecewise(_scaled, place, 0, 1, 32)
    return torch.where(x < 0, 2 * (x * x).exp() - right, right)


def erfc(x: torch.Tensor) -> torch.Tensor:
    """Returns 1 - erf(x), with all digits where erf is close to 1."""
    size = x.abs()
    right = (-size * size).exp() * erfcx(size)
    return torch.where(x < 0, 2 - right, right)


def erf(x: torch.Tensor) -> torch.Tensor:
    """Returns erf(x): by powers of x² up to 1, from its complement beyond."""
    inner = x * piecewise(_inner, x * x, 0, 1, 4)
    return torch.where(x.abs() <= 1, inner, 1 - erfc(x))


def erfinv(y: torch.Tensor) -> torch.Tensor:
    """Returns the inverse of erf; NaN outside [-1, 1]."""
    size = y.abs()
    inner = y * piecewise(_inverse_inner, y * y, 0, _CENTRE**2, 16)
    outer = y.sign() * lower_tail((1 - size) / 2) * math.sqrt(0.5)
    return torch.where(size <= _CENTRE, inner, outer)


def lower_tail(p: torch.Tensor) -> torch.Tensor:
    """Returns z for which a normal variable is below -z with probability p, at most e⁻²."""
    place = (-2 * p.log()).sqrt()
    return torch.where(p == 0, math.inf, piecewise(_quantile, place, 2, 39, 48))


def _scaled(u: Any) -> Any:
    if u == 0:
        return 1 / (4 * mpmath.sqrt(mpmath.pi))
    x = 4 / u - 4
    return mpmath.exp(x * x) * mpmath.erfc(x) / u


def _inner(t: Any) -> Any:
    return mpmath.erf(mpmath.sqrt(t)) / mpmath.sqrt(t)


def _inverse_inner(t: Any) -> Any:
    return mpmath.erfinv(mpmath.sqrt(t)) / mpmath.sqrt(t)


def _quantile(s: Any) -> Any:
    """Inverts the lower tail by Newton's method on the logarithm of the probability."""
    z = s - 1 / s
    for _ in range(40):
        tail = mpmath.erfc(z / mpmath.sqrt(2)) / 2
        slope = mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi) / tail
        step = (mpmath.log(tail) + s * s / 2) / slope
        z += step
        if abs(step) < mpmath.mpf(10) ** -30:
            break
    return z


_INF, _NAN = float("inf"), float("nan")
_POINTS = (0.5, -1.5, 3.0, -5.0, 0.0, 1e-6, 6.5, 12.0, -0.25, _INF, -_INF, _NAN)
_FRACTIONS = (0.5, -0.25, 1.0, -1.0, 0.0, 0.72, 0.74, -0.999, 0.9999999, 1e-9, 1.5, _NAN)
_PROBABILITIES = (0.5, 0.25, 1.0, 0.0, 1e-30, 0.135, 0.136, 0.9999, 0.87, 1e-7, -0.5, 1.5, _NAN)


class _OfFloat64(Univariate):
    """Computes a function of float64 only, for which ONNX Runtime has no kernel. Other dtypes keep the ONNX
    operator."""

    def decompose(self, self_: Any, *more: Any) -> Any:
        return super().decompose(self_) if self_.dtype == torch.float64 else NotImplemented


def ndtri(p: torch.Tensor) -> torch.Tensor:
    """Returns the quantiles of the normal distribution, √2·erfinv(2p - 1). For small p, where 2p - 1 loses the digits
    of p, it uses `lower_tail`."""
    return torch.where(p < math.exp(-2), -lower_tail(p), math.sqrt(2) * erfinv(2 * p - 1))


Erf = univariate("Erf", ("aten::erf", "aten::special_erf", "prims::erf"), erf, _POINTS, _OfFloat64)
# PyTorch's exporter writes 1 - erf(x), which has no digits left beyond 4.
Erfc = univariate("Erfc", ("aten::erfc", "aten::special_erfc", "prims::erfc"), erfc, _POINTS)
Erfcx = univariate("Erfcx", ("aten::special_erfcx", "prims::erfcx"), erfcx, _POINTS)
Erfinv = univariate("Erfinv", ("aten::erfinv", "aten::special_erfinv", "prims::erf_inv"), erfinv, _FRACTIONS)
Ndtri = univariate("Ndtri", ("aten::special_ndtri", "prims::ndtri"), ndtri, _PROBABILITIES)
