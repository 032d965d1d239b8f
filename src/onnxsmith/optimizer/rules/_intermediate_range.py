"""Tells whether joining two factors, or two summands, can be visible in the result: without the intermediate value,
nothing overflows, becomes 0 or loses digits there."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_FAR = 2.0**10
"""An intermediate value that differs from the result by more than this factor counts as far away. A choice: beyond,
more than 10 bits may be lost."""
_Array = npt.NDArray[np.float64]


def loses_factor(first: _Array) -> bool:
    """Whether x * first may lose digits, overflow or become 0 although x * first * second does not."""
    inner = np.abs(first[first != 0])
    return bool((inner > _FAR).any() or (inner < 1 / _FAR).any())


def loses_summand(first: _Array, both: _Array, second: _Array) -> bool:
    """Whether x + first may lose digits that x + both keeps. `both` is first + second."""
    return bool((_FAR * np.abs(both) < np.maximum(np.abs(first), np.abs(second))).any())


def room_for_factor(first: _Array, second: _Array, limits: np.finfo) -> float:
    """Returns the largest x up to which x * first overflows only if x * first * second overflows, too."""
    a, b = np.broadcast_arrays(first, second)
    back = np.abs(a[(np.abs(a) > 1) & (np.abs(b) < 1)])
    return float(limits.max) / float(back.max()) if back.size else math.inf


def room_for_summand(first: _Array, second: _Array, limits: np.finfo) -> float:
    """Returns the largest x up to which x + first overflows only if x + first + second overflows, too."""
    a, b = np.broadcast_arrays(first, second)
    most = float(limits.max)
    size = np.abs(a[(a * b < 0) & (np.abs(a) >= most * float(limits.eps) / 4)])  # a smaller one is rounded off
    return most - float(size.max()) if size.size else math.inf


def leaves_range(weights: _Array, scale: _Array, limits: np.finfo) -> bool:
    """Whether a sum of products with weights may overflow or become 0 although the result times `scale` does not.
    `weights` has the largest size of the weights for each scale. The product of two numbers below the root of the
    largest number never overflows; for float16, whose root is 256, the bound is 2^10."""
    root = max(math.sqrt(float(limits.max)), _FAR)
    size, by = np.abs(weights), np.abs(scale)
    return bool((((size > root) & (by < 1)) | ((size > 0) & (size < 1 / root) & (by > 1))).any())
