"""The largest absolute difference."""

from __future__ import annotations

import numpy as np

from onnxsmith.verification.metrics.base import Array, Metric, finite


class MaxAbs(Metric):
    """max |reference - candidate|, in the units of the output."""

    title = "largest absolute difference"

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        with np.errstate(over="ignore"):
            return float(np.max(np.abs(a - b))) if a.size else float("nan")
