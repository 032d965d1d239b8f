"""Recognises a weight that is stored in another form: transposed, reshaped, cast."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from onnxsmith.comparison.graphs import array_differences, rounded_weights
from onnxsmith.verification.metrics.base import Array, is_numeric, widen

_MOST_AXES = 5
"""Axes up to which every permutation is tried. A choice: 120 permutations, of which few fit the shape."""
_SAMPLE = 512
"""Elements that a permutation is tried on before all are compared. A choice."""
_ALIKE = 0.9
"""Cosine of samples from which a weight is the same weight, transposed and changed. A choice."""


def in_form(a: Array, b: Array) -> tuple[str, Array, bool] | None:
    """Returns how `b` stores the weight `a` otherwise, `a` in that form, and whether they are equal then. None if the
    two have nothing in common, or no other form."""
    if a.size != b.size or not a.size or not is_numeric(a) or not is_numeric(b):
        return None
    narrow = a if a.dtype == b.dtype else cast(a, b)
    kind = "" if a.dtype == b.dtype else "cast"
    if a.shape == b.shape and kind and array_differences.equal(narrow, b):
        return kind, narrow, True
    near: tuple[float, str, Array] | None = None
    for order in _orders(a, b):
        turned = narrow.transpose(order)
        cosine = _cosine(turned, b)
        if near is None or cosine > near[0]:
            near = (cosine, f"transposed {order}{', cast' if kind else ''}", turned)
        if cosine > 1 - 1e-9 and array_differences.equal(turned, b):
            return near[1] if near[2] is turned else f"transposed {order}", turned, True
        if cosine > 1 - 1e-9 and not kind and rounded_weights.within(turned, b):
            return f"transposed {order}", turned, False
    if a.shape != b.shape:
        flat = narrow.reshape(b.shape)
        if array_differences.equal(flat, b):
            return f"reshaped{', cast' if kind else ''}", flat, True
        if near is not None and near[0] > _ALIKE:
            return near[1], near[2], False
        if _cosine(flat, b) > _ALIKE:
            return f"reshaped{', cast' if kind else ''}", flat, False
    return (kind, narrow, False) if kind and a.shape == b.shape else None


def cast(a: Array, b: Array) -> Array:
    """Returns `a` in the dtype of `b`."""
    with np.errstate(all="ignore"):
        if a.dtype.kind == "c" or b.dtype.kind == "c":
            return a.astype(b.dtype) if b.dtype.kind == "c" else a.real.astype(b.dtype)
        wide = a if a.dtype.kind in "fiub" else a.astype(np.float32)
        return wide.astype(b.dtype)


def _orders(a: Array, b: Array) -> Iterator[tuple[int, ...]]:
    """Yields the permutations of the axes that turn the shape of `a` into that of `b`."""
    if a.ndim != b.ndim or not 2 <= a.ndim <= _MOST_AXES:
        return
    for order in itertools.permutations(range(a.ndim)):
        kept = [axis for axis in order if a.shape[axis] > 1]
        if kept != sorted(kept) and tuple(a.shape[axis] for axis in order) == b.shape:
            yield order


def _cosine(a: Array, b: Array) -> float:
    """The cosine of the same elements of both arrays, some hundred of them."""
    rng = np.random.default_rng(0)
    places = tuple(rng.integers(0, size, _SAMPLE) for size in a.shape) if a.size > _SAMPLE else ...
    x, y = (np.nan_to_num(widen(np.asarray(one[places])).reshape(-1), posinf=1.0, neginf=-1.0) for one in (a, b))
    peak = max(float(np.max(np.abs(x))), float(np.max(np.abs(y))), 1e-300)
    x, y = x / peak, y / peak
    norms = float(np.sqrt(np.sum(x**2)) * np.sqrt(np.sum(y**2)))
    return float(np.sum(x * y)) / norms if norms else float(np.array_equal(x, y))
