"""Pairs the boxes of two answers by their overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxsmith.gate.answers.base import Limits
from onnxsmith.gate.box_forms import Array

_STEP = 1.0
"""How far a coordinate that is a whole number may be: rounding may go to either neighbour."""


def overlaps(a: Array, b: Array) -> Array:
    """Returns the intersection over union of each box of `a` with each of `b`, [N, M]. Two equal boxes have 1, also
    without an area, or with the same number that is not finite at the same place."""
    with np.errstate(invalid="ignore", over="ignore"):
        inside = _shared(a, b, 0) * _shared(a, b, 1)
        areas = [np.abs((boxes[:, 2:] - boxes[:, :2]).prod(-1)) for boxes in (a, b)]
        union = areas[0][:, None] + areas[1][None] - inside
    is_area = (union > 0) & np.isfinite(union)
    share = np.divide(inside, union, out=np.zeros_like(union), where=is_area)
    share[_within(a, b, np.zeros((len(a), 1)))] = 1.0
    return np.asarray(share)


def _shared(a: Array, b: Array, axis: int) -> Array:
    """Returns how far boxes overlap along an axis, [N, M]."""
    low = np.maximum(a[:, None, axis], b[None, :, axis])
    return np.asarray(np.clip(np.minimum(a[:, None, axis + 2], b[None, :, axis + 2]) - low, 0, None))


def _within(a: Array, b: Array, allowed: Array) -> Array:
    """Returns which boxes have no coordinate that is off by more than `allowed` [N, 1], [N, M]. A number that is not
    finite is within an equal one only."""
    found = np.ones((len(a), len(b)), bool)
    for x, y in zip(a.T[:, :, None], b.T[:, None], strict=True):  # by coordinate, to save memory
        with np.errstate(invalid="ignore", over="ignore"):
            found &= (np.abs(x - y) <= allowed) | (x == y) | (np.isnan(x) & np.isnan(y))
    return found


def near(a: Array, b: Array, shares: Array, limits: Limits, *, are_whole: bool) -> Array:
    """Returns which boxes of `a` may be which of `b`, [N, M]. Boxes without an area are compared as arrays are: for
    them an overlap says nothing."""
    may = np.asarray(shares >= limits.overlap)
    if are_whole and limits.overlap < 1:
        may |= _within(a, b, np.full((len(a), 1), _STEP))
    rows, columns = np.flatnonzero(~_has_area(a)), np.flatnonzero(~_has_area(b))
    if len(rows) and len(columns):
        ours = a[rows]
        largest = np.abs(np.where(np.isfinite(ours), ours, 0.0)).max(-1, initial=0.0)[:, None]
        allowed = limits.of_array(np.dtype(np.float32)) * largest
        may[np.ix_(rows, columns)] |= _within(ours, b[columns], allowed)
    return may


def _has_area(boxes: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = boxes[:, 2:] - boxes[:, :2]
    return np.asarray((sizes > 0).all(-1) & np.isfinite(boxes).all(-1))


def equal_labels(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> Array:
    """Returns which labels are equal, [N, M]. NaN is equal to NaN."""
    codes: dict[Any, int] = {}
    rows = [
        np.array([codes.setdefault("NaN" if label != label else (label,), len(codes)) for label in labels], int)
        for labels in (ours, theirs)
    ]
    return np.asarray(rows[0][:, None] == rows[1][None])


def far_scores(ours: Any, theirs: Any, limits: Limits) -> Array:
    """Returns which scores are further apart than is allowed, [N, M]. A score above 1 may be off by a share of it."""
    a, b = np.array(ours, np.float64)[:, None], np.array(theirs, np.float64)[None]
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(a - b)
    is_same = (a == b) | (np.isnan(a) & np.isnan(b))
    allowed = limits.of_scores * np.where(np.isfinite(a), np.maximum(1.0, np.abs(a)), 1.0)
    return np.asarray(~is_same & ~(np.isfinite(apart) & (apart <= allowed)))


def pairs(shares: Array, may: Array, is_far: Array) -> list[tuple[int, int]]:
    """Returns pairs of boxes in the order of the first answer, each box once. Pairs whose scores are not far apart come
    first, then those that overlap most."""
    places = sorted(np.argwhere(may).tolist(), key=lambda at: (is_far[at[0], at[1]], -shares[at[0], at[1]]))
    ours: set[int] = set()
    theirs: set[int] = set()
    found = []
    for m, n in places:
        if m not in ours and n not in theirs:
            ours.add(m)
            theirs.add(n)
            found.append((m, n))
    return sorted(found)
