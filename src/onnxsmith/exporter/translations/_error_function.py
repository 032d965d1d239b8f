"""The error function's relatives, of float64: scaled complement, complement, inverse of the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import torch

from onnxsmith.exporter.translations._series import piecewise

_CENTRE = 1 - 2 * math.exp(-2)
"""Up to this argument the inverse is a power series in the argument, above it one in √(-2·log(1 - argument))."""


def erfcx(x: torch.Tensor) -> torch.Tensor:
    """e^x²·erfc(x), which falls as 1/x: smooth in 4/(4 + x). Left of zero by erfc(-x) = 2 - erfc(x)."""
    place = 4 / (4 + x.abs())
    right = place * piecewise(_scaled, place, 0, 1, 32)
    return torch.where(x < 0, 2 * (x * x).exp() - right, right)


def erfc(x: torch.Tensor) -> torch.Tensor:
    """1 - erf(x), with all digits where erf is close to 1."""
    size = x.abs()
    right = (-size * size).exp() * erfcx(size)
    return torch.where(x < 0, 2 - right, right)


def erf(x: torch.Tensor) -> torch.Tensor:
    """By powers of x² up to 1, beyond that from its complement."""
    inner = x * piecewise(_inner, x * x, 0, 1, 4)
    return torch.where(x.abs() <= 1, inner, 1 - erfc(x))


def erfinv(y: torch.Tensor) -> torch.Tensor:
    """NaN outside of [-1, 1]."""
    size = y.abs()
    inner = y * piecewise(_inverse_inner, y * y, 0, _CENTRE**2, 16)
    outer = y.sign() * lower_tail((1 - size) / 2) * math.sqrt(0.5)
    return torch.where(size <= _CENTRE, inner, outer)


def lower_tail(p: torch.Tensor) -> torch.Tensor:
    """z for which a normal variable is below -z with probability p, at most e⁻²."""
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
    """Newton's method on the logarithm of the probability."""
    z = s - 1 / s
    for _ in range(40):
        tail = mpmath.erfc(z / mpmath.sqrt(2)) / 2
        slope = mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi) / tail
        step = (mpmath.log(tail) + s * s / 2) / slope
        z += step
        if abs(step) < mpmath.mpf(10) ** -30:
            break
    return z
