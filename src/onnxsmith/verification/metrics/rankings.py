"""Measures whether two arrays agree on the best elements of each row of scores."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from onnxsmith.verification.metrics.base import Array, Metric, widen


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
