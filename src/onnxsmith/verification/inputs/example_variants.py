"""Makes inputs like an example: other numbers with its structure.

Torch modules come with example inputs. The rules for valid inputs are unknown, so the visible structure of the example
is kept: an order, zeros and ones, rows that sum to 1, corners of boxes, invertible matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onnxsmith.verification.inputs.roles import Array, Draw, matrices

_FEW = 4
"""Limits the distinct values of an example that count as all possible values. A choice: a mask of 0 and -inf has
two."""
_LARGEST_MATRIX = 8
"""Limits the size of a square matrix that is kept invertible. A choice: transformations have 2 to 4 rows."""
_SAME = 1e-3
"""Sets the tolerance for a sum or norm of 1. A choice: above the rounding of float16."""
_BY_CHANCE = math.log(100)
"""Decides when an order counts as structure: fewer than one in a hundred random examples would show it. A choice."""


def like_example(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    """Makes values in `shape` with the structure of the example; None if the example has no structure."""
    if not example.size or example.ndim != len(shape) or example.dtype.kind not in "biuf":
        return None
    if example.dtype.kind == "f" and np.isnan(example).any():
        return None
    with np.errstate(all="ignore"):  # squares of the largest floats overflow
        return next((found for one in _STRUCTURES if (found := one(example, shape, draw)) is not None), None)


def spread_like(example: Array, shape: tuple[int, ...], rng: Any) -> Array | None:
    """Draws numbers with the mean, spread and range of an example; None if all of its numbers are equal."""
    wide = example.astype(np.float64)
    wide = wide[np.isfinite(wide)]
    if not wide.size or not wide.min() < wide.max():
        return None
    peak = np.abs(wide).max()  # normalised first: squares of the largest floats overflow
    wide = wide / peak
    low, high = wide.min(), wide.max()
    drawn: Array = np.asarray(rng.normal(wide.mean(), wide.std(), shape))
    outside = (drawn < low) | (drawn > high)  # drawn again, not cut off: equal numbers have no order
    return np.asarray(np.where(outside, rng.uniform(low, high, shape), drawn) * peak)


Structure = Callable[[Array, tuple[int, ...], Draw], Array | None]


def _counting(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    """Makes positions: 0, 1, 2, … along the last axis."""
    if example.dtype.kind not in "iu" or not example.ndim or example.shape[-1] < 3:
        return None
    start = example[..., :1]
    if not (example - start == np.arange(example.shape[-1])).all() or (start != start.flat[0]).any():
        return None
    return np.broadcast_to(int(start.flat[0]) + np.arange(shape[-1]), shape).copy()


def _triangle(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    """Makes a causal mask: one value on and below the diagonal, another above."""
    if example.ndim < 2 or min(example.shape[-2:]) < 2 or len(np.unique(example)) != 2:
        return None
    below, above = example[..., -1, 0].flat[0], example[..., 0, -1].flat[0]
    for offset in (0, 1, -1):
        if (example == np.where(np.tri(example.shape[-2], example.shape[-1], offset, bool), below, above)).all():
            drawn = np.where(np.tri(shape[-2], shape[-1], offset, bool), below, above)
            return np.broadcast_to(drawn, shape).copy()
    return None


def _prefixes(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    """Makes a padding mask: each row begins with one value and goes on with another, or the other way round."""
    values = np.unique(example)
    if example.ndim < 2 or example.shape[-1] < 2 or len(values) > 2 or not shape[-1]:
        return None
    is_mask = example.dtype.kind == "b" or {*values.tolist()} <= {0, 1} or values.min() < -1000
    changes = (example[..., 1:] != example[..., :-1]).sum(-1)
    if not is_mask or (changes > 1).any() or (len(values) == 2 and not changes.any()):
        return None
    first, last = example[..., :1], example[..., -1:]
    kept = first if len(np.unique(first)) == 1 else last
    inside = kept.flat[0]
    if len(values) == 1 and example.dtype.kind == "f":
        return None
    outside = values[values != inside][0] if len(values) == 2 else 1 - int(inside)
    lengths = draw.rng.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    places = np.arange(shape[-1])
    if kept is last:
        places = places[::-1]
    return np.where(places < lengths, inside, outside)


def _few(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    """Draws from a small set: 0 and 1, or one value that is infinite or far below the others."""
    values, counts = np.unique(example, return_counts=True)
    if example.size < 2 * _FEW or not 1 < len(values) <= _FEW or example.dtype.kind in "iu":
        return None
    return np.asarray(draw.rng.choice(values, shape, p=counts / counts.sum()))


def _probabilities(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    if example.dtype.kind != "f" or not example.ndim or example.shape[-1] < 2 or not shape[-1]:
        return None
    wide = example.astype(np.float64)
    if wide.min() < 0 or not np.allclose(wide.sum(-1), 1, atol=_SAME):
        return None
    drawn = draw.rng.random(shape) + 0.05
    return np.asarray(drawn / drawn.sum(-1, keepdims=True))


def _unit_vectors(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    if example.dtype.kind != "f" or not example.ndim or example.shape[-1] < 2 or not shape[-1]:
        return None
    if not np.allclose(np.linalg.norm(example.astype(np.float64), axis=-1), 1, atol=_SAME):
        return None
    drawn = draw.rng.standard_normal(shape)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=-1, keepdims=True))


def _matrices(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    """Makes small invertible square matrices: the example's, moved by so little that they stay invertible."""
    square = example.ndim in (2, 3) and example.shape[-1] == example.shape[-2] <= _LARGEST_MATRIX
    if not square or example.dtype.kind != "f" or shape[-2:] != example.shape[-2:] or example.shape[-1] < 2:
        return None
    wide = example.astype(np.float64).reshape(-1, *example.shape[-2:])
    if not np.isfinite(wide).all() or np.linalg.cond(wide).max() > 1 / _SAME:
        return None
    count = int(np.prod(shape[:-2], dtype=np.int64))
    chosen = wide[draw.rng.integers(0, len(wide), count)]
    moved = chosen @ matrices((count, *shape[-2:]), draw)
    # Properties of the example's matrices are restored: symmetric, triangular, orthogonal.
    if np.allclose(wide, wide.transpose(0, 2, 1), atol=_SAME):
        moved = (moved + moved.transpose(0, 2, 1)) / 2
    if np.allclose(np.tril(wide, -1), 0, atol=_SAME * np.abs(wide).max()):
        moved = np.triu(moved)
    if np.allclose(np.triu(wide, 1), 0, atol=_SAME * np.abs(wide).max()):
        moved = np.tril(moved)
    if np.allclose(wide @ wide.transpose(0, 2, 1), np.eye(wide.shape[-1]), atol=_SAME):
        turned, scaled = np.linalg.qr(moved)
        moved = turned * np.sign(np.diagonal(scaled, axis1=1, axis2=2))[:, None, :]
    return np.asarray(moved.reshape(shape))


def _boxes(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    """Draws boxes with ordered corners, inside the area that the example covers."""
    if example.dtype.kind == "b" or example.ndim < 2 or example.shape[-1] != 4 or shape[-1] != 4:
        return None
    low, high = example[..., :2].astype(np.float64), example[..., 2:].astype(np.float64)
    rows = int(np.prod(example.shape[:-1], dtype=np.int64))
    if not np.isfinite(high).all() or low.min(initial=0) < 0 or not (low < high).all() or rows < 2:
        return None
    least, most = low.reshape(-1, 2).min(0), high.reshape(-1, 2).max(0)
    side = np.array([(high - low)[..., axis].min() for axis in (0, 1)])
    corner = draw.rng.uniform(least, np.maximum(most - side, least), (*shape[:-1], 2))
    end = draw.rng.uniform(corner + side, np.maximum(most, corner + side))
    return np.concatenate([corner, end], axis=-1)


def _sorted(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    """Draws numbers in ascending or descending order along the last axis: offsets, packed batches, time steps."""
    if not example.ndim or example.shape[-1] < 3 or example.dtype.kind == "b":
        return None
    steps = np.diff(example.astype(np.float64), axis=-1)
    up, down = (steps >= 0).all(), (steps <= 0).all()
    if not (up or down) or not steps.any() or not np.isfinite(steps).all():
        return None
    rows = example.size // example.shape[-1]
    if rows * math.lgamma(example.shape[-1] + 1) < _BY_CHANCE:
        return None
    low, high = example.min(), example.max()
    whole = example.dtype.kind in "iu"
    drawn = draw.rng.integers(low, int(high) + 1, shape) if whole else draw.rng.uniform(low, high, shape)
    found = np.sort(drawn, axis=-1) if up else np.sort(drawn, axis=-1)[..., ::-1]
    if up and shape[-1] and (example[..., 0] == 0).all():
        found[..., 0] = 0
    return found


def _permutation(example: Array, shape: tuple[int, ...], draw: Draw) -> Array | None:
    """Draws the numbers from 0 up, each once."""
    if example.dtype.kind not in "iu" or not example.ndim or example.shape[-1] < 3:
        return None
    if not (np.sort(example, axis=-1) == np.arange(example.shape[-1])).all():
        return None
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    return np.array([draw.rng.permutation(shape[-1]) for _ in range(rows)]).reshape(shape)


_STRUCTURES: tuple[Structure, ...] = (
    _counting, _permutation, _triangle, _prefixes, _few, _probabilities, _boxes, _matrices, _unit_vectors, _sorted,
)  # fmt: skip
