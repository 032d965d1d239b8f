"""Elementary functions, and the parts of floats: sign, exponent and last bit.

Exact exponents come from arithmetic and a table of powers of two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._tensors import constant, look_up
from onnxsmith.exporter.translations._univariate import Univariate
from onnxsmith.exporter.translations.base import Sample, Translation


class Expm1(Univariate, targets=("aten::expm1", "aten::special_expm1", "prims::expm1")):
    """Computes `expm1`, eˣ - 1 with all digits for small x, as (w - 1)·x / log(w) for w = eˣ (Kahan).

    The factor x / log(w) corrects the rounding of w.
    """

    points = (0.0, 1.5, 1e-9, -1e-7, -0.5, 1e-4, 30.0, -40.0, -1.0, 1000.0, float("inf"), -float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        whole = x.exp()
        plain = (whole == 1) | (whole < 1e-10) | whole.isinf()
        found = (whole - 1) * x / torch.where(plain, 2.0, whole).log()
        return torch.where(whole == 1, x, torch.where(plain, whole - 1, found))


class Log1p(Univariate, targets=("aten::log1p", "aten::special_log1p", "prims::log1p")):
    """Computes `log1p`, log(1 + x) with all digits for small x, as log(w)·x / (w - 1) for w = 1 + x (Kahan).

    The factor x / (w - 1) corrects the rounding of w. The remaining error of float64 is not visible in a float32.
    """

    points = (0.0, 1.5, 1e-9, -1e-7, -0.5, 1e-4, 30.0, 1e20, -1.0, -2.0, float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        whole = 1 + x
        exact = (whole == 1) | x.isinf()
        found = whole.log() * (x / torch.where(exact, 1.0, whole - 1))
        return torch.where(exact, x, found)


class Hypot(Translation, targets=("aten::hypot", "prims::hypot")):
    """Computes `hypot`, the length of a vector with two components, as m·√((a/m)² + (b/m)²) for the larger component m.

    So no square overflows or underflows. The result is infinite if either component is, even if the other is NaN (C's
    `hypot`).
    """

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        a, b = self_.to(dtype).abs(), other.to(dtype).abs()
        most = torch.maximum(a, b)
        # avoids 0 / 0 and inf / inf, which are NaN
        unit = torch.where((most == 0) | most.isinf(), 1.0, most)
        first, second = a / unit, b / unit
        return torch.where(a.isinf() | b.isinf(), float("inf"), most * (first * first + second * second).sqrt())

    def samples(self) -> Iterator[Sample]:
        nan, inf = float("nan"), float("inf")
        yield Sample((torch.randn(3, 4), torch.randn(4)), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(3, dtype=torch.float64), torch.randn(2, 1)))
        yield Sample((torch.tensor([inf, nan, 0.0, -3.0, 1e30]), torch.tensor([nan, 1.0, 0.0, 4.0, -1e30])))
        yield Sample((torch.tensor(3.0), torch.tensor(-4.0)))
        yield Sample((torch.zeros(0, 3), torch.ones(3)))


class Copysign(Translation, targets=("aten::copysign.Tensor", "aten::copysign.Scalar")):
    """Computes `copysign`: the absolute value of a number, negated where `signbit` of another is true.

    Integers become the default float dtype.
    """

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        if not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        size = self_.to(dtype).abs()
        if isinstance(other, torch.Tensor):
            return torch.where(torch.signbit(other), -size, size)
        return -size if math.copysign(1.0, other) < 0 else size

    def samples(self) -> Iterator[Sample]:
        signs = torch.tensor([-2.0, -0.0, 0.0, 1.5])
        yield Sample((torch.randn(3, 4), signs), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(3, 1, dtype=torch.float64), signs))
        yield Sample((torch.tensor([-3, 4, 0, 5]), signs))
        yield Sample((torch.tensor([-3, 4]), torch.tensor([1, -1], dtype=torch.int32)))
        yield Sample((torch.tensor([True, False]), torch.tensor([True, False])))
        yield Sample((torch.randn(3), -0.0), target="aten::copysign.Scalar")
        yield Sample((torch.randint(-3, 3, (3,)), 2), target="aten::copysign.Scalar")
        yield Sample((torch.tensor(-0.0), torch.tensor(1.0)))
        yield Sample((torch.zeros(0, 4), signs))


class Signbit(Translation, targets=("aten::signbit", "prims::signbit")):
    """Computes `signbit`: true below zero, and for a zero whose reciprocal is below zero (-0).

    ONNX operators cannot read the sign of a NaN; it counts as positive, like `float("nan")` and the NaNs that ARM
    computes.
    """

    def decompose(self, self_: Any) -> Any:
        if self_.dtype == torch.bool:
            return torch.zeros_like(self_)
        if not self_.is_floating_point():
            return self_ < 0
        return (self_ < 0) | (self_.reciprocal() < 0)

    def samples(self) -> Iterator[Sample]:
        values = [-2.0, -0.0, 0.0, 1.5, float("inf"), -float("inf"), float("nan"), -1e-45]
        for dtype in (torch.float32, torch.float64, torch.float16):
            yield Sample((torch.tensor(values, dtype=dtype),))
        yield Sample((torch.randn(3, 2),), dynamic={0: {0: "n"}})
        yield Sample((torch.tensor([-1, 0, 3]),))
        yield Sample((torch.tensor([True, False]),))
        yield Sample((torch.tensor(-0.0),))
        yield Sample((torch.zeros(0, 3),))


class Atan2(Translation, targets=("aten::atan2", "aten::arctan2", "prims::atan2")):
    """Computes `atan2`, the angle of the point (x, y), from atan(|y| / |x|) and the signs of both.

    The signs of zeros count (C's `atan2`): the angle of (-1, 0) is π and of (-1, -0) is -π. 0 / 0 counts as 0, ∞ / ∞ as
    1. Integers become the default float dtype.
    """

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        if not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        y, x = self_.to(dtype), other.to(dtype)
        height, width = y.abs(), x.abs()
        slope = torch.where(height == width, (height != 0).to(dtype), height / width)
        angle = slope.atan()
        angle = torch.where(torch.signbit(x), math.pi - angle, angle)
        return torch.where(torch.signbit(y), -angle, angle)

    def samples(self) -> Iterator[Sample]:
        edges = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-30, -3e30, float("inf"), -float("inf"), float("nan")])
        yield Sample((torch.randn(3, 4), torch.randn(4)), dynamic={0: {0: "n"}})
        for dtype in (torch.float32, torch.float64):
            yield Sample((edges.to(dtype)[:, None], edges.to(dtype)))
        yield Sample((torch.tensor([-3, 4, 0]), torch.tensor([-1, 0, -2])))
        yield Sample((torch.tensor(0.0), torch.tensor(-1.0)))
        yield Sample((torch.zeros(0, 3), torch.ones(3)))


_LEAST = {torch.float32: -149, torch.float64: -1074, torch.float16: -24}
"""Gives the exponent of the smallest positive number of each dtype."""


def exponent(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns ⌊log₂|x|⌋ as int64, and 2 to this power. For 0, infinities and NaN it is the smallest exponent.

    The computed logarithm may be off by one; a comparison with the neighbouring powers corrects it.
    """
    size = torch.where(x.isfinite(), x, 0.0).abs()
    least, powers = powers_of_two(x)
    guess = torch.where(size == 0, 1.0, size).log2().floor().to(torch.int64)
    place = (torch.where(size == 0, least, guess) - least).clamp(0, powers.shape[0] - 1)
    place = (place - (look_up(powers, place) > size).to(torch.int64)).clamp(min=0)
    above = (place + 1).clamp(max=powers.shape[0] - 1)
    place = torch.where((look_up(powers, above) <= size) & (size > 0), above, place)
    return place + least, look_up(powers, place)


def powers_of_two(x: torch.Tensor) -> tuple[int, torch.Tensor]:
    """Returns the smallest exponent of the dtype, and all its powers of two from there."""
    least = _LEAST[x.dtype]
    _, most = torch.finfo(x.dtype).max.hex().split("p")
    return least, constant([2.0**e for e in range(least, int(most) + 1)], x.dtype)


class Frexp(Translation, targets=("aten::frexp", "prims::frexp")):
    """Computes `frexp`: a number as a fraction in [½, 1) and an exponent, by an exact division by a power of two.

    0, infinities and NaN are their own fractions, with exponent 0.
    """

    def decompose(self, self_: Any) -> Any:
        found, power = exponent(self_)
        own = (self_ == 0) | ~self_.isfinite()
        fraction = torch.where(own, self_, self_ / torch.where(own, 1.0, power) * 0.5)
        return fraction, torch.where(own, 0, found + 1).to(torch.int32)

    def samples(self) -> Iterator[Sample]:
        values = [0.0, -0.0, 1.0, -1.0, 0.5, 3e38, 1e-38, 7e-45, 1e-45, float("inf"), float("nan"), 0.9999999, 8.0]
        yield Sample((torch.randn(3, 4) * 100,), dynamic={0: {0: "n"}})
        yield Sample((torch.tensor(values),))
        yield Sample((torch.tensor([*values, 5e-324, 1.7e308, 1e-310], dtype=torch.float64),))
        yield Sample((torch.tensor(-6.5),))
        yield Sample((torch.zeros(0, 3),))


class Nextafter(Translation, targets=("aten::nextafter", "prims::nextafter")):
    """Computes `nextafter`, the next float in the direction of another, by adding or subtracting the last bit.

    The last bit is that of the number's binade. From a power of two towards zero it is that of the next lower binade.
    Subnormal numbers all have one distance. The neighbour of infinity is the largest number.
    """

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        if dtype not in (torch.float32, torch.float64):
            return NotImplemented
        x, towards = torch.broadcast_tensors(self_.to(dtype), other.to(dtype))  # type: ignore[no-untyped-call]
        outward = (towards > x) == (x >= 0)
        found, power = exponent(x)
        least, powers = powers_of_two(x)
        digits = {torch.float32: 23, torch.float64: 52}[dtype]
        lower = ((power == x.abs()) & ~outward).to(torch.int64)
        gap = look_up(powers, (found - lower - digits - least).clamp(min=0))
        up = towards > x
        near = torch.where(up, x + gap, x - gap)
        most = torch.finfo(dtype).max
        near = torch.where(x.isinf(), torch.where(up, torch.full_like(x, -most), most), near)
        # a negative number that reaches zero keeps its sign, as in C
        near = torch.where((near == 0) & (x < 0), -0.0, near)
        near = torch.where(x == towards, towards, near)
        return torch.where(x.isnan() | towards.isnan(), float("nan"), near)

    def samples(self) -> Iterator[Sample]:
        inf, nan = float("inf"), float("nan")
        values = [0.0, -0.0, 1.0, -1.0, 0.5, 1e30, 1.1754943508222875e-38, 1e-45, -1e-45, nan]
        yield Sample((torch.randn(3, 4), torch.randn(4)), dynamic={0: {0: "n"}})
        for dtype in (torch.float32, torch.float64):
            given = torch.tensor(values, dtype=dtype)
            yield Sample((given[:, None], torch.tensor([-inf, inf, 0.0, 1.0], dtype=dtype)))
        yield Sample((torch.tensor(2.0), torch.tensor(0.0)))
        yield Sample((torch.zeros(0, 3), torch.ones(3)))
