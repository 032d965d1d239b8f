"""Distinguishes weights that differ by rounding from weights that changed.

Two exporters may fold a BatchNormalization into the weights of a Conv in a different order of operations, so that the
results differ in their last digits.
"""

from __future__ import annotations

import numpy as np

from onnxsmith.comparison.graphs.array_differences import blocks
from onnxsmith.verification.metrics.base import Array

_OPERATIONS = 8
"""How many roundings two weights may be apart. Folding a BatchNormalization takes an addition, a square root, a
division and a multiplication on each side, each of which rounds once."""
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
"""Dtypes for which that many roundings are far below one part in a thousand. In narrower dtypes they are a change that
a model may notice, so every difference counts."""


def within(a: Array, b: Array) -> bool:
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
