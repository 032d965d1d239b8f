"""Measures the difference between two arrays: distances, ratios of signal to noise, rankings."""

from __future__ import annotations

from typing import ClassVar

import ml_dtypes
import numpy as np
import numpy.typing as npt

from onnxsmith.verification.metrics.base import Array, Floats, Metric, blocks, finite, scaled, widen


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


class Sqnr(Metric):
    """Computes 10 log10(Σ reference² / Σ (reference - candidate)²), in decibels, the usual measure of a quantised
    layer.

    The ratio is infinite for equal arrays, and minus infinity if only the reference is zero. One bit is 6.02 dB (20
    log10 2).
    """

    title = "signal to quantisation noise"
    unit = "dB"
    better = "higher"
    equal = float("inf")

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        if not a.size:
            return float("nan")
        a, b, _ = scaled(a, b)
        noise, signal = rms(a - b), rms(a)
        if noise == 0:
            return float("inf")
        return 20 * float(np.log10(signal) - np.log10(noise)) if signal else float("-inf")


class Psnr(Metric):
    """Computes 10 log10(peak² / mean (reference - candidate)²), in decibels (ITU-T J.340), over all channels at once.

    The peak of integers is the largest of their dtype, 255 for uint8. The peak of floats is the range of the reference,
    its largest minus its smallest element. The ratio is infinite for equal arrays, and minus infinity for a constant
    reference.
    """

    title = "peak signal to noise"
    unit = "dB"
    better = "higher"
    equal = float("inf")

    def applies(self, reference: Array) -> bool:
        """Whether the array may be an image or a batch of images: three dimensions or more, and neither bools nor
        complex numbers."""
        return super().applies(reference) and reference.ndim >= 3 and reference.dtype.kind not in "bc"

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        if not a.size:
            return float("nan")
        a, b, largest = scaled(a, b)
        noise = rms(a - b)
        if noise == 0:
            return float("inf")
        whole = reference.dtype.kind in "iu"
        peak = float(np.iinfo(reference.dtype).max) / largest if whole else float(a.max() - a.min())
        return 20 * float(np.log10(peak) - np.log10(noise)) if peak else float("-inf")


class _Agreement(Metric):
    """Measures agreement of rows of scores, by the positions of the `k` best scores of each row."""

    k: ClassVar[int]
    better = "higher"
    equal = 1.0

    def applies(self, reference: Array) -> bool:
        """Whether the array holds real numbers, with rows of more than `k` elements."""
        real = super().applies(reference) and reference.dtype.kind not in "bc"
        return real and reference.ndim > 0 and reference.shape[-1] > self.k

    def measure(self, reference: Array, candidate: Array) -> float:
        return _agreement(reference, candidate, self.k)


def _agreement(reference: Array, candidate: Array, k: int) -> float:
    """Returns the share of rows, along the last axis, whose k largest elements are at the same positions, in any order.

    If elements tie for the last position, either may count: rows agree if they agree for some choice. Rows with a NaN
    are left out; the result is NaN if no row is left.
    """
    size = reference.shape[-1]
    a, b = widen(reference).reshape(-1, size), widen(candidate).reshape(-1, size)
    known = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
    a, b = a[known], b[known]
    if not len(a):
        return float("nan")
    must_a, may_a = _chosen(a, k)
    must_b, may_b = _chosen(b, k)
    must, may = must_a | must_b, may_a & may_b
    same = (must <= may).all(axis=1) & (must.sum(axis=1) <= k) & (may.sum(axis=1) >= k)
    return float(np.mean(same))


def _chosen(rows: Array, k: int) -> tuple[Array, Array]:
    """Returns two sets of elements: those that are among the k largest for every choice between ties, and those that
    are among them for some choice."""
    last = np.partition(rows, -k, axis=1)[:, -k, None]
    return rows > last, rows >= last


class Top1(_Agreement):
    """Computes the share of rows, along the last axis, whose largest element is at the same position; ties may be
    broken either way. The share is 1 if a classifier gives the same answers."""

    title = "agreement of the top 1"
    k = 1


class Top5(_Agreement):
    """Computes the share of rows, along the last axis, whose five largest elements are at the same positions, in any
    order; ties may be broken either way. The share is 1 if a classifier gives the same answers."""

    title = "agreement of the top 5"
    k = 5
