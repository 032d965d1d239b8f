"""Measures the distance between the values of two arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt

from onnxsmith.verification.metrics.base import Array, Floats, Metric, blocks, finite


class MaxAbs(Metric):
    """Computes max |reference - candidate|, in the units of the output."""

    title = "largest absolute difference"

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        with np.errstate(over="ignore"):
            return float(np.max(np.abs(a - b))) if a.size else float("nan")


class MaxRel(Metric):
    """Computes max |reference - candidate| / (rms(reference) + |reference|); 0 where both are zero.

    Because of the root mean square, elements that cancel to almost nothing do not dominate. Because of the element's
    own size, an exceptionally large element is not judged by the scale of the others.
    """

    title = "largest difference relative to scale"

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        if not a.size:
            return float("nan")
        return largest(a, b, rms(a))[1]


def largest(reference: Array, candidate: Array, scale: float) -> tuple[float, float]:
    """Returns two numbers for finite floats: the largest difference, and the largest difference relative to `scale`
    plus the reference's own size. Both numbers are 0 if there is no difference."""
    absolute = over = 0.0
    for a, b in blocks(reference, candidate):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            apart = np.abs(a - b)
            ratio = apart / (np.abs(a) + scale)
        if scale == 0:  # 0 / 0 for equal elements
            ratio[apart == 0] = 0.0
        absolute, over = max(absolute, float(np.max(apart))), max(over, float(np.max(ratio)))
    return absolute, over


def rms(array: Array) -> float:
    """Computes the root mean square of finite floats, without overflow."""
    pieces = [(float(np.max(a)), float(np.min(a))) for (a,) in blocks(array)]
    peak = max((max(high, -low) for high, low in pieces), default=0.0)
    if not peak > 0:
        return 0.0
    squares = (np.einsum("i,i->", a / peak, a / peak) for (a,) in blocks(array))
    return peak * float(np.sqrt(sum(squares) / array.size))


_KINDS = tuple(
    np.dtype(kind)
    for kind in (
        np.float16,
        np.float32,
        np.float64,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    )
)


class Ulp(Metric):
    """Computes the largest distance in units in the last place: how many steps of the dtype lie between the two values.

    Floats of one format are ordered like their bits, apart from the sign. So the distance is a difference of integers,
    also across zero, with +0 and -0 equal (B. Dawson, "Comparing Floating Point Numbers, 2012 Edition"; the same bias
    as in GoogleTest's FloatingPoint). If the sides have two formats, the wider side is rounded to the narrower format.
    Complex numbers count by their parts.
    """

    title = "largest distance in units in the last place"
    unit = "ulp"

    def applies(self, reference: Array) -> bool:
        return reference.size > 0 and (reference.dtype in _KINDS or reference.dtype.kind == "c")

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = _parts(reference), _parts(candidate)
        kind = min(a.dtype, b.dtype, key=lambda dtype: dtype.itemsize)
        with np.errstate(over="ignore"):
            a, b = a.astype(kind, copy=False), b.astype(kind, copy=False)
        both = np.isfinite(a) & np.isfinite(b)
        x, y = _ordered(a[both]), _ordered(b[both])
        return float(np.max(np.where(x > y, x - y, y - x))) if x.size else float("nan")


def _parts(array: Array) -> Array:
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], axis=-1)


def _ordered(array: Array) -> npt.NDArray[np.uint64]:
    """Returns the rank of each number among all numbers of its format. Positive numbers rank above the middle, negative
    numbers below."""
    bits = array.dtype.itemsize * 8
    codes = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.uint64)
    sign = np.uint64(1 << (bits - 1))
    return np.where(codes & sign, sign - (codes & ~sign), codes | sign)


class Cosine(Metric):
    """Computes 1 - cos of the angle between the two arrays, as vectors: 0 for equal directions, 1 for a right angle, 2
    for opposite directions. The scale has no effect. Two zero vectors have distance 0; a zero vector and another vector
    have distance 1.

    The distance is computed as |u - v|² / 2 for the unit vectors u and v (|u - v|² = 2 - 2 cos), because 1 minus a
    cosine near 1 would lose half of the digits.
    """

    title = "cosine distance"

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        if not a.size:
            return float("nan")
        if not a.any() or not b.any():
            return float(a.any() != b.any())
        return float(np.sum((_unit(a) - _unit(b)) ** 2) / 2)


def _unit(vector: Floats) -> Floats:
    safe = vector / float(np.max(np.abs(vector)))  # prevents over- and underflow of the squares
    return safe / float(np.sqrt(np.sum(safe**2)))
