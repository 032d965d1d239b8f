"""Whether the best is the same."""

from __future__ import annotations

from onnxsmith.metrics._ranks import agreement
from onnxsmith.metrics.base import Array, Metric

_K = 1


class Top1(Metric):
    """The share of rows, along the last axis, whose largest element is at the same place; ties may
    fall either way. 1 for a classifier whose answers are all the same."""

    title = "agreement of the top 1"
    better = "higher"
    equal = 1.0

    def applies(self, reference: Array) -> bool:
        """Real numbers with more than 1 in a row."""
        real = super().applies(reference) and reference.dtype.kind not in "bc"
        return real and reference.ndim > 0 and reference.shape[-1] > _K

    def measure(self, reference: Array, candidate: Array) -> float:
        return agreement(reference, candidate, _K)
