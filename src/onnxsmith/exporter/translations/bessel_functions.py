"""Bessel and Airy functions, computed in float64.

Bessel functions of order 0 and 1 use power series for small arguments. For large ones they use the amplitudes of the
asymptotic forms (DLMF 10.17, 10.40), which are smooth in 1/x.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import mpmath
import torch

from onnxsmith.exporter.translations._univariate import Univariate, piecewise, univariate
from onnxsmith.exporter.translations.base import Sample


def scaled_i(order: int, x: torch.Tensor) -> torch.Tensor:
    """Returns e^-|x| times the modified Bessel function of the first kind."""
    size = x.abs()
    large = size.clamp(min=8)
    near = piecewise(_SMALL_I[order], size, 0, 8, 12)
    far = piecewise(_LARGE_I[order], 8 / large, 0, 1, 12) / large.sqrt()
    found = torch.where(size <= 8, near, far)
    return found * x.sign() if order else found


def scaled_k(order: int, x: torch.Tensor) -> torch.Tensor:
    """Returns e^x times the modified Bessel function of the second kind; infinite at 0, NaN below 0."""
    small, large = x.clamp(0, 2), x.clamp(min=2)
    logarithm = (small / 2).log() * scaled_i(order, small) * small.exp()
    series = piecewise(_SMALL_K[order], small * small, 0, 4, 4)
    near = (logarithm + series / small if order else series - logarithm) * small.exp()
    far = piecewise(_LARGE_K[order], 2 / large, 0, 1, 12) / large.sqrt()
    found = torch.where(x == 0, math.inf, torch.where(x <= 2, near, far))
    return torch.where(x < 0, math.nan, found)


def j(order: int, x: torch.Tensor) -> torch.Tensor:
    """Returns the Bessel function of the first kind."""
    size = x.abs()
    near = piecewise(_SMALL_J[order], size * size, 0, 64, 10)
    near = near * size if order else near
    modulus, sine, cosine, p, q = _waves(order, size)
    found = torch.where(size <= 8, near, modulus * (p * cosine - q * sine))
    return found * x.sign() if order else found


def y(order: int, x: torch.Tensor) -> torch.Tensor:
    """Returns the Bessel function of the second kind; minus infinity at 0, NaN below 0."""
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
    """Returns ∫ e^(-x·(cosh t - 1))·cosh(order·t) dt from 0 to ∞ (DLMF 10.32.9). The trapezoidal rule converges
    exponentially for this integral, and takes a twentieth of the time of mpmath's function."""
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


_NAN = float("nan")
_I = (0.0, 1.5, -2.25, 8.0, 1e-6, -7.5, 9.5, 30.0, -12.0, 3.0, _NAN)
_K = (1.5, 0.25, 3.0, 7.5, 0.0, 1e-6, 2.0, 8.0, 8.5, 40.0, -1.0, _NAN)
_J = (0.0, 1.5, -2.25, 4.5, 1e-6, -3.5, 3.0, _NAN)
_Y = (1.5, 0.25, 3.0, 4.5, 0.0, 1e-6, 2.0, -1.0, _NAN)


class _Wave(Univariate):
    """Computes a Bessel function that oscillates. All digits of float64 are right. PyTorch's kernel has only seven to
    nine in places, whatever the dtype, so samples are compared in float32."""

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.args[0].dtype != torch.float64)
        yield Sample((torch.tensor([7.5, 8.5, 30.0, 12.0]),))


# I is the modified function of the first kind, `scaled_i` times its growth e^|x|; with an `e` it lacks this factor.
_I0_TARGETS = ("aten::i0", "aten::special_i0", "prims::bessel_i0", "aten::special_modified_bessel_i0")
_I1_TARGETS = ("aten::special_i1", "prims::bessel_i1", "aten::special_modified_bessel_i1")
I0 = univariate("I0", _I0_TARGETS, lambda x: scaled_i(0, x) * x.abs().exp(), _I)
I1 = univariate("I1", _I1_TARGETS, lambda x: scaled_i(1, x) * x.abs().exp(), _I)
I0e = univariate("I0e", ("aten::special_i0e", "prims::bessel_i0e"), lambda x: scaled_i(0, x), _I)
I1e = univariate("I1e", ("aten::special_i1e", "prims::bessel_i1e"), lambda x: scaled_i(1, x), _I)

# K is the modified function of the second kind, `scaled_k` times its decay e^-x; with an `e` it lacks this factor.
K0 = univariate("K0", "aten::special_modified_bessel_k0", lambda x: scaled_k(0, x) * (-x).exp(), _K)
K1 = univariate("K1", "aten::special_modified_bessel_k1", lambda x: scaled_k(1, x) * (-x).exp(), _K)
K0e = univariate("K0e", "aten::special_scaled_modified_bessel_k0", lambda x: scaled_k(0, x), _K)
K1e = univariate("K1e", "aten::special_scaled_modified_bessel_k1", lambda x: scaled_k(1, x), _K)

# J is the function of the first kind, Y that of the second.
J0 = univariate("J0", ("aten::special_bessel_j0", "prims::bessel_j0"), lambda x: j(0, x), _J, _Wave)
J1 = univariate("J1", ("aten::special_bessel_j1", "prims::bessel_j1"), lambda x: j(1, x), _J, _Wave)
Y0 = univariate("Y0", "aten::special_bessel_y0", lambda x: y(0, x), _Y, _Wave)
Y1 = univariate("Y1", "aten::special_bessel_y1", lambda x: y(1, x), _Y, _Wave)


class SphericalBesselJ0(Univariate, targets=("aten::special_spherical_bessel_j0", "prims::spherical_bessel_j0")):
    """Computes `special.spherical_bessel_j0` as sin(x)/x, with 1 at 0 and 0 at infinity (DLMF 10.49.3)."""

    points = (0.0, 1.5, -2.25, 0.3, 1e-6, 9.5, 30.0, -12.0, float("inf"), _NAN)

    def value(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.where((x == 0) | x.isinf(), 1.0, x)
        return torch.where(x.isinf(), 0.0, torch.where(x == 0, 1.0, inner.sin() / inner))


_FAR = 16 / 3
"""Is the phase from which the asymptotic forms are used, ⅔·4^(3/2)."""


class AiryAi(Univariate, targets="aten::special_airy_ai"):
    """Computes `special.airy_ai`, the Airy function Ai, by a polynomial from -4 to 4 and by asymptotic forms beyond.

    The amplitudes of these forms (DLMF 9.7.5, 9.7.9) are smooth in 1/ζ for ζ = ⅔·|x|^(3/2). Samples are compared in
    float32 only, because PyTorch's float64 kernel has six digits.
    """

    kernel_error = 2e-5
    points = (0.0, 1.5, -2.0, 4.0, -4.5, 3.5, 5.0, 9.0, 2.0, _NAN)

    def value(self, x: torch.Tensor) -> torch.Tensor:
        size = x.abs().clamp(min=4)
        phase = 2 / 3 * size * size.sqrt()
        place, root = _FAR / phase, size.sqrt().sqrt() * math.sqrt(math.pi)
        falling = piecewise(_falling, place, 0, 1, 4) * (-phase).exp() / (2 * root)
        angle = phase - math.pi / 4
        waving = piecewise(_COSINE, place, 0, 1, 8) * angle.cos() + piecewise(_SINE, place, 0, 1, 8) * angle.sin()
        near = piecewise(mpmath.airyai, x, -4, 4, 8)
        return torch.where(x > 4, falling, torch.where(x < -4, waving / root, near))

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.args[0].dtype != torch.float64)


def _falling(u: Any) -> Any:
    phase = _FAR / u
    x = (phase * 3 / 2) ** (mpmath.mpf(2) / 3)
    return 2 * mpmath.sqrt(mpmath.pi) * x**0.25 * mpmath.exp(phase) * mpmath.airyai(x)


def _waving(sine: bool, u: Any) -> Any:
    phase = _FAR / u
    x = (phase * 3 / 2) ** (mpmath.mpf(2) / 3)
    first, second = mpmath.airyai(-x), mpmath.airybi(-x)
    s, c = mpmath.sin(phase - mpmath.pi / 4), mpmath.cos(phase - mpmath.pi / 4)
    return mpmath.sqrt(mpmath.pi) * x**0.25 * (first * s + second * c if sine else first * c - second * s)


_COSINE, _SINE = functools.partial(_waving, False), functools.partial(_waving, True)
