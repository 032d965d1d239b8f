"""Bessel functions of order 0 and 1, of float64: power series for small arguments, and for large ones the amplitudes of
their asymptotic forms (DLMF 10.17, 10.40), which are smooth in 1/x."""

from __future__ import annotations

import functools
import math
from typing import Any

import mpmath
import torch

from onnxsmith.exporter.translations._series import piecewise


def scaled_i(order: int, x: torch.Tensor) -> torch.Tensor:
    """e^-|x| times the modified function of the first kind."""
    size = x.abs()
    large = size.clamp(min=8)
    near = piecewise(_SMALL_I[order], size, 0, 8, 12)
    far = piecewise(_LARGE_I[order], 8 / large, 0, 1, 12) / large.sqrt()
    found = torch.where(size <= 8, near, far)
    return found * x.sign() if order else found


def scaled_k(order: int, x: torch.Tensor) -> torch.Tensor:
    """e^x times the modified function of the second kind; infinite at 0, NaN left of it."""
    small, large = x.clamp(0, 2), x.clamp(min=2)
    logarithm = (small / 2).log() * scaled_i(order, small) * small.exp()
    series = piecewise(_SMALL_K[order], small * small, 0, 4, 4)
    near = (logarithm + series / small if order else series - logarithm) * small.exp()
    far = piecewise(_LARGE_K[order], 2 / large, 0, 1, 12) / large.sqrt()
    found = torch.where(x == 0, math.inf, torch.where(x <= 2, near, far))
    return torch.where(x < 0, math.nan, found)


def j(order: int, x: torch.Tensor) -> torch.Tensor:
    """The function of the first kind."""
    size = x.abs()
    near = piecewise(_SMALL_J[order], size * size, 0, 64, 10)
    near = near * size if order else near
    modulus, sine, cosine, p, q = _waves(order, size)
    found = torch.where(size <= 8, near, modulus * (p * cosine - q * sine))
    return found * x.sign() if order else found


def y(order: int, x: torch.Tensor) -> torch.Tensor:
    """The function of the second kind; minus infinity at 0, NaN left of it."""
    small = x.clamp(0, 8)
    series = piecewise(_SMALL_Y[order], small * small, 0, 64, 10)
    logarithm = small.log() * j(order, small)
    near = (2 / math.pi) * (logarithm - 1 / small) + small * series if order else (2 / math.pi) * logarithm + series
    modulus, sine, cosine, p, q = _waves(order, x)
    found = torch.where(x <= 8, near, modulus * (p * sine + q * cosine))
    return torch.where(x < 0, math.nan, torch.where(x == 0, -math.inf, found))


def _waves(order: int, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    large = x.clamp(min=8)
    angle = large - (2 * order + 1) * math.pi / 4
    p, q = (piecewise(one, 8 / large, 0, 1, 4) for one in (_P[order], _Q[order]))
    return (2 / (math.pi * large)).sqrt(), angle.sin(), angle.cos(), p, q


def _small_i(order: int, x: Any) -> Any:
    return mpmath.besseli(order, x) * mpmath.exp(-x)


def _large_i(order: int, u: Any) -> Any:
    return mpmath.besseli(order, 8 / u) * mpmath.exp(-8 / u) * mpmath.sqrt(8 / u)


def _small_k(order: int, t: Any) -> Any:
    x = mpmath.sqrt(t)
    logarithm = mpmath.log(x / 2) * mpmath.besseli(order, x)
    return x * (_scaled_k(1, x) * mpmath.exp(-x) - logarithm) if order else _scaled_k(0, x) * mpmath.exp(-x) + logarithm


def _large_k(order: int, u: Any) -> Any:
    return _scaled_k(order, 2 / u) * mpmath.sqrt(2 / u)


def _scaled_k(order: int, x: Any) -> Any:
    """∫ e^(-x·(cosh t - 1))·cosh(order·t) dt from 0 to ∞ (DLMF 10.32.9). The trapezoidal rule converges exponentially
    for it, and takes a twentieth of the time of mpmath's own."""
    step = min(mpmath.mpf(1) / 9, mpmath.mpf(9) / 20 / mpmath.sqrt(x))
    last = mpmath.acosh(1 + 100 / x)
    count = int(last / step) + 1
    terms = (mpmath.exp(x * (1 - mpmath.cosh(k * step))) * mpmath.cosh(order * k * step) for k in range(1, count))
    return step * (mpmath.mpf(1) / 2 + sum(terms))


def _small_j(order: int, t: Any) -> Any:
    x = mpmath.sqrt(t)
    return mpmath.besselj(order, x) / x**order


def _small_y(order: int, t: Any) -> Any:
    x = mpmath.sqrt(t)
    logarithm = mpmath.log(x) * mpmath.besselj(order, x)
    if order:
        return (mpmath.bessely(1, x) - 2 / mpmath.pi * (logarithm - 1 / x)) / x
    return mpmath.bessely(0, x) - 2 / mpmath.pi * logarithm


def _amplitude(order: int, sine: bool, u: Any) -> Any:
    x = 8 / u
    angle = x - (2 * order + 1) * mpmath.pi / 4
    first, second = mpmath.besselj(order, x), mpmath.bessely(order, x)
    s, c = mpmath.sin(angle), mpmath.cos(angle)
    return mpmath.sqrt(mpmath.pi * x / 2) * (second * c - first * s if sine else first * c + second * s)


_SMALL_I, _LARGE_I, _SMALL_K, _LARGE_K, _SMALL_J, _SMALL_Y = (
    [functools.partial(one, order) for order in (0, 1)]
    for one in (_small_i, _large_i, _small_k, _large_k, _small_j, _small_y)
)
_P, _Q = ([functools.partial(_amplitude, order, sine) for order in (0, 1)] for sine in (False, True))
