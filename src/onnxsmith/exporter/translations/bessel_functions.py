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

from onnxsmith.exporter.translations._series import piecewise
from onnxsmith.exporter.translations._univariate import Univariate
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


class I0(Univariate):
    """Computes `i0`, the modified Bessel function of the first kind and order 0, as `scaled_i` times its growth
    e^|x|."""

    targets = (
        "aten::i0",
        "aten::special_i0",
        "prims::bessel_i0",
        "aten::special_modified_bessel_i0",
    )
    points = (0.0, 1.5, -2.25, 8.0, 1e-6, -7.5, 9.5, 30.0, -12.0, 3.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_i(0, x) * x.abs().exp()


class I0e(Univariate):
    """Computes `special.i0e`, the modified Bessel function of the first kind and order 0, times e^-|x|, by
    `scaled_i`."""

    targets = (
        "aten::special_i0e",
        "prims::bessel_i0e",
    )
    points = (0.0, 1.5, -2.25, 8.0, 1e-6, -7.5, 9.5, 30.0, -12.0, 3.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_i(0, x)


class I1(Univariate):
    """Computes `special.i1`, the modified Bessel function of the first kind and order 1, as `scaled_i` times e^|x|."""

    targets = (
        "aten::special_i1",
        "prims::bessel_i1",
        "aten::special_modified_bessel_i1",
    )
    points = (0.0, 1.5, -2.25, 8.0, 1e-6, -7.5, 9.5, 30.0, -12.0, 3.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_i(1, x) * x.abs().exp()


class I1e(Univariate):
    """Computes `special.i1e`, the modified Bessel function of the first kind and order 1, times e^-|x|, by
    `scaled_i`."""

    targets = (
        "aten::special_i1e",
        "prims::bessel_i1e",
    )
    points = (0.0, 1.5, -2.25, 8.0, 1e-6, -7.5, 9.5, 30.0, -12.0, 3.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_i(1, x)


class K0(Univariate):
    """Computes `special.modified_bessel_k0` (second kind, order 0) as `scaled_k` times its decay e^-x."""

    targets = ("aten::special_modified_bessel_k0",)
    points = (1.5, 0.25, 3.0, 7.5, 0.0, 1e-6, 2.0, 8.0, 8.5, 40.0, -1.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_k(0, x) * (-x).exp()


class K0e(Univariate):
    """Computes `special.scaled_modified_bessel_k0` (second kind, order 0, times e^x) by `scaled_k`."""

    targets = ("aten::special_scaled_modified_bessel_k0",)
    points = (1.5, 0.25, 3.0, 7.5, 0.0, 1e-6, 2.0, 8.0, 8.5, 40.0, -1.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_k(0, x)


class K1(Univariate):
    """Computes `special.modified_bessel_k1` (second kind, order 1) as `scaled_k` times its decay e^-x."""

    targets = ("aten::special_modified_bessel_k1",)
    points = (1.5, 0.25, 3.0, 7.5, 0.0, 1e-6, 2.0, 8.0, 8.5, 40.0, -1.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_k(1, x) * (-x).exp()


class K1e(Univariate):
    """Computes `special.scaled_modified_bessel_k1` (second kind, order 1, times e^x) by `scaled_k`."""

    targets = ("aten::special_scaled_modified_bessel_k1",)
    points = (1.5, 0.25, 3.0, 7.5, 0.0, 1e-6, 2.0, 8.0, 8.5, 40.0, -1.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_k(1, x)


class J0(Univariate):
    """Computes `special.bessel_j0`, the Bessel function of the first kind and order 0, by `j`.

    All digits of float64 are right. PyTorch's kernel has only seven to nine in places, whatever the dtype.
    """

    targets = (
        "aten::special_bessel_j0",
        "prims::bessel_j0",
    )
    points = (0.0, 1.5, -2.25, 4.5, 1e-6, -3.5, 3.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return j(0, x)

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.args[0].dtype != torch.float64)
        yield Sample((torch.tensor([7.5, 8.5, 30.0, 12.0]),))


class J1(Univariate):
    """Computes `special.bessel_j1`, the Bessel function of the first kind and order 1, by `j`.

    All digits of float64 are right. PyTorch's kernel has only seven to nine in places, whatever the dtype.
    """

    targets = (
        "aten::special_bessel_j1",
        "prims::bessel_j1",
    )
    points = (0.0, 1.5, -2.25, 4.5, 1e-6, -3.5, 3.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return j(1, x)

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.args[0].dtype != torch.float64)
        yield Sample((torch.tensor([7.5, 8.5, 30.0, 12.0]),))


class Y0(Univariate):
    """Computes `special.bessel_y0`, the Bessel function of the second kind and order 0, by `y`.

    All digits of float64 are right. PyTorch's kernel has only seven to nine in places, whatever the dtype.
    """

    targets = ("aten::special_bessel_y0",)
    points = (1.5, 0.25, 3.0, 4.5, 0.0, 1e-6, 2.0, -1.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return y(0, x)

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.args[0].dtype != torch.float64)
        yield Sample((torch.tensor([7.5, 8.5, 30.0, 12.0]),))


class Y1(Univariate):
    """Computes `special.bessel_y1`, the Bessel function of the second kind and order 1, by `y`.

    All digits of float64 are right. PyTorch's kernel has only seven to nine in places, whatever the dtype.
    """

    targets = ("aten::special_bessel_y1",)
    points = (1.5, 0.25, 3.0, 4.5, 0.0, 1e-6, 2.0, -1.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return y(1, x)

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.args[0].dtype != torch.float64)
        yield Sample((torch.tensor([7.5, 8.5, 30.0, 12.0]),))


class SphericalBesselJ0(Univariate):
    """Computes `special.spherical_bessel_j0` as sin(x)/x, with 1 at 0 and 0 at infinity (DLMF 10.49.3)."""

    targets = ("aten::special_spherical_bessel_j0", "prims::spherical_bessel_j0")
    points = (0.0, 1.5, -2.25, 0.3, 1e-6, 9.5, 30.0, -12.0, float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.where((x == 0) | x.isinf(), 1.0, x)
        return torch.where(x.isinf(), 0.0, torch.where(x == 0, 1.0, inner.sin() / inner))


_FAR = 16 / 3
"""⅔·4^(3/2), the phase from which the asymptotic forms are used."""


class AiryAi(Univariate):
    """Computes `special.airy_ai`, the Airy function Ai, by a polynomial from -4 to 4 and by asymptotic forms beyond.

    The amplitudes of these forms (DLMF 9.7.5, 9.7.9) are smooth in 1/ζ for ζ = ⅔·|x|^(3/2). Samples are compared in
    float32 only, because PyTorch's float64 kernel has six digits.
    """

    targets = ("aten::special_airy_ai",)
    kernel_error = 2e-5
    points = (0.0, 1.5, -2.0, 4.0, -4.5, 3.5, 5.0, 9.0, 2.0, float("nan"))

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
