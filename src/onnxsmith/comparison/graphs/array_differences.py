"""Compares arrays of one shape in blocks, and tells rounded weights from weights that changed.

Two exporters may fold a BatchNormalization into the weights of a Conv in a different order of operations, so that the
results differ in their last digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxsmith.runtimes import _dtypes
from onnxsmith.verification.metrics.base import Array, Floats, is_numeric, widen

_BLOCK = 2**18
"""Elements in a block. A choice: 2 MiB of float64."""


@dataclass(frozen=True)
class Figures:
    """The measures of difference between two arrays; see `WeightChange`. `changed` counts elements."""

    max_abs: float | None
    max_rel: float | None
    changed: int
    cosine_distance: float | None


def blocks(a: Array, b: Array) -> Iterator[tuple[Array, Array]]:
    """Yields both arrays in flat pieces, in the element order of the first. Arrays stored in another order are copied
    piece by piece, never as a whole."""
    if a.size <= _BLOCK:
        yield a.reshape(-1), b.reshape(-1)
    elif a.flags.c_contiguous and b.flags.c_contiguous:
        first, second = a.reshape(-1), b.reshape(-1)
        for start in range(0, first.size, _BLOCK):
            yield first[start : start + _BLOCK], second[start : start + _BLOCK]
    else:
        rows = max(1, len(a) * _BLOCK // a.size)
        for start in range(0, len(a), rows):
            piece, other = a[start : start + rows], b[start : start + rows]
            if len(piece) == 1:
                yield from blocks(piece[0], other[0])
            else:
                yield piece.reshape(-1), other.reshape(-1)


def differing(a: Array, b: Array) -> int:
    """Counts the elements that differ, by their bits: 0.0 and -0.0 differ. A NaN equals a NaN."""
    return sum(int(_unlike(x, y).sum()) for x, y in blocks(a, b))


def equal(a: Array, b: Array) -> bool:
    """Whether no element differs."""
    return not any(_unlike(x, y).any() for x, y in blocks(a, b))


def _unlike(a: Array, b: Array) -> npt.NDArray[np.bool_]:
    if not is_numeric(a):
        return np.asarray(a != b)
    if _dtypes.bits(_dtypes.name_of(a.dtype)) < 8:  # the unused bits of a byte may hold anything
        return np.asarray(widen(a) != widen(b))
    size = a.dtype.itemsize
    if size > 8:
        apart = (a.view(np.uint64) != b.view(np.uint64)).reshape(-1, size // 8).any(axis=1)
    else:
        kind = f"u{size}"
        apart = np.asarray(np.ascontiguousarray(a).view(kind) != np.ascontiguousarray(b).view(kind))
    if apart.any():
        apart = apart & ~(_nan(a) & _nan(b))
    return np.asarray(apart)


def _nan(array: Array) -> npt.NDArray[np.bool_]:
    if array.dtype.kind in "iub":
        return np.zeros(array.shape, bool)
    return np.asarray(np.isnan(array.astype(np.float32) if array.dtype.kind == "V" else array))


def figures(a: Array, b: Array) -> Figures:
    """Returns the measures of difference between two arrays of one shape, of numbers of any dtype."""
    changed, most, peaks, found = 0, 0.0, [0.0, 0.0], False
    for x, y in _widened(a, b):
        if a.dtype != b.dtype:
            changed += int((x != y).sum() - (np.isnan(x) & np.isnan(y)).sum())
        first, second = _finite(x, y)
        if first.size:
            found = True
            with np.errstate(over="ignore"):
                most = max(most, float(np.max(np.abs(first - second))))
            peaks = [max(peak, float(np.max(np.abs(one)))) for peak, one in zip(peaks, (first, second), strict=True)]
    if a.dtype == b.dtype:
        changed = differing(a, b)
    if not found:
        return Figures(None, None, changed, None)
    return Figures(most, *_relative(a, b, (peaks[0], peaks[1]), changed))


def _relative(a: Array, b: Array, peaks: tuple[float, float], changed: int) -> tuple[float, int, float]:
    """Returns the largest relative difference, the count of changed elements, and the cosine distance. Divides by the
    largest element first, so that no square overflows or underflows."""
    scales = [peak or 1.0 for peak in peaks]
    squares, count = [0.0, 0.0], 0
    for x, y in _widened(a, b):
        first, second = _finite(x, y)
        count += first.size
        for side, one in enumerate((first, second)):
            squares[side] += float(np.sum((one / scales[side]) ** 2))
    root = scales[0] * math.sqrt(squares[0] / count)
    norms = [scale * math.sqrt(s) for scale, s in zip(scales, squares, strict=True)]
    relative = distance = 0.0
    for x, y in _widened(a, b):
        first, second = _finite(x, y)
        if not first.size:
            continue
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            apart = np.abs(first - second)
            ratio = np.where(apart == 0, 0.0, apart / (np.abs(first) + root))
        relative = max(relative, float(np.max(ratio)))
        if all(norms):
            distance += float(np.sum((first / norms[0] - second / norms[1]) ** 2))
    return relative, changed, distance / 2 if all(norms) else float(norms[0] != norms[1])


def _widened(a: Array, b: Array) -> Iterator[tuple[Floats, Floats]]:
    for x, y in blocks(a, b):
        yield widen(x).reshape(-1), widen(y).reshape(-1)


def _finite(x: Any, y: Any) -> tuple[Floats, Floats]:
    both = np.isfinite(x) & np.isfinite(y)
    return (x, y) if both.all() else (x[both], y[both])


_OPERATIONS = 8
"""How many roundings two weights may be apart. Folding a BatchNormalization takes an addition, a square root, a
division and a multiplication on each side, each of which rounds once."""
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
"""Dtypes for which that many roundings are far below one part in a thousand. In narrower dtypes they are a change that
a model may notice, so every difference counts."""


def within_rounding(a: Array, b: Array) -> bool:
    """Whether two float32 or float64 arrays of one shape and dtype differ only by rounding. An element may differ by a
    few units in the last place of its own size. In a vector, such as a bias or a tensor of shape [1, n], the size of
    the largest element counts: its elements are sums of terms that may cancel. Infinities and NaN must be equal."""
    if a.shape != b.shape or a.dtype != b.dtype or a.dtype not in _DTYPES:
        return False
    kind = np.finfo(a.dtype)
    least = _OPERATIONS * float(kind.smallest_subnormal)
    if a.size and max(a.shape, default=1) == a.size:
        finite = np.abs(np.concatenate([a.reshape(-1), b.reshape(-1)]))
        finite = finite[np.isfinite(finite)]
        least += _OPERATIONS / 2 * float(kind.eps) * float(finite.max(initial=0.0))
    return all(_near(x, y, _OPERATIONS / 2 * float(kind.eps), least) for x, y in blocks(a, b))


def _near(a: Array, b: Array, relative: float, least: float) -> bool:
    """Compares elements within the bounds. One rounding is half of `eps`."""
    x, y = a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(x - y) <= relative * np.maximum(np.abs(x), np.abs(y)) + least
    exact = ~(np.isfinite(x) & np.isfinite(y))
    if exact.any():
        near = np.where(exact, (x == y) | (np.isnan(x) & np.isnan(y)), near)
    return bool(near.all())
