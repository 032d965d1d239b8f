"""Whether the best five are the same."""

from __future__ import annotations

from onnxsmith.metrics._ranks import agreement
from onnxsmith.metrics.base import Array, Metric

_K = 5


class Top5(Metric):
    """The share of rows, along the last axis, whose five largest elements are at the same places, in any order; ties
    may fall either way. 1 for a classifier whose answers are all the same."""

    title = "agreement of the top 5"
    better = "higher"
    equal = 1.0

    def applies(self, reference: Array) -> bool:
        """Real numbers with more than 5 in a row."""
        real = super().applies(reference) and reference.dtype.kind not in "bc"
        return real and reference.ndim > 0 and reference.shape[-1] > _K

    def measure(self, reference: Array, candidate: Array) -> float:
        return agreement(reference, candidate, _K)
