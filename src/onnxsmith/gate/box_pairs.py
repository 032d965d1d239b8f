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
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    with np.errstate(invalid="ignore", over="ignore"):
        inside = np.clip(high - low, 0, None).prod(-1)
        areas = [np.abs((boxes[:, 2:] - boxes[:, :2]).prod(-1)) for boxes in (a, b)]
        union = areas[0][:, None] + areas[1][None] - inside
        is_area = (union > 0) & np.isfinite(union)
        share = np.divide(inside, union, out=np.zeros_like(union), where=is_area)
    equal = ((a[:, None] == b[None]) | (np.isnan(a)[:, None] & np.isnan(b)[None])).all(-1)
    return np.where(equal, 1.0, share)


def near(a: Array, b: Array, shares: Array, limits: Limits, *, are_whole: bool) -> Array:
    """Returns which boxes of `a` may be which of `b`, [N, M]. Boxes without an area are compared as arrays are: for
    them an overlap says nothing."""
    may = shares >= limits.overlap
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(a[:, None] - b[None])
    is_same = (a[:, None] == b[None]) | (np.isnan(a)[:, None] & np.isnan(b)[None])
    if are_whole and limits.overlap < 1:
        may |= (is_same | (apart <= _STEP)).all(-1)
    flat = ~_has_area(a)[:, None] & ~_has_area(b)[None]
    largest = np.abs(np.where(np.isfinite(a), a, 0.0)).max(-1, initial=0.0)
    allowed = limits.of_array(np.dtype(np.float32)) * largest[:, None, None]
    return np.asarray(may | (flat & (is_same | (apart <= allowed)).all(-1)))


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
