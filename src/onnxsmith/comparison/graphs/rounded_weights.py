"""Tells weights that differ by rounding from weights that changed.

Two exporters fold a BatchNormalization into the weights of a Conv in another order of the same operations, so that the
results differ in their last digits.
"""

from __future__ import annotations

import numpy as np

from onnxsmith.comparison.graphs.array_differences import blocks
from onnxsmith.verification.metrics.base import Array

_OPERATIONS = 8
"""Roundings that two weights may be apart. Folding a BatchNormalization takes an addition, a square root, a division
and a multiplication on each side, each of which rounds once."""
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
"""Floats of which so many roundings are far below one part in a thousand. In narrower ones they are a change that a
model may feel, so that every difference counts."""


def within(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape and dtype, float32 or float64, differ by no more than rounding does: an element
    by a few units in the last place of its own size. In a vector, such as a bias or one of shape [1, n], the size is
    that of the largest element: its elements are sums of terms that may cancel each other. Infinities and NaN have to
    be equal."""
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
    """One rounding is half of `eps`."""
    x, y = a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(x - y) <= relative * np.maximum(np.abs(x), np.abs(y)) + least
    exact = ~(np.isfinite(x) & np.isfinite(y))
    if exact.any():
        near = np.where(exact, (x == y) | (np.isnan(x) & np.isnan(y)), near)
    return bool(near.all())
