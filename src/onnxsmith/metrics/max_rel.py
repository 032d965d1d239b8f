"""The largest difference relative to the output's scale."""

from __future__ import annotations

import numpy as np

from onnxsmith.metrics.base import Array, Floats, Metric, finite


class MaxRel(Metric):
    """max |reference - candidate| / (rms(reference) + |reference|); 0 where both are zero.

    The root mean square keeps elements that cancel to almost nothing from dominating, and an element that stands out
    from being measured by the others alone.
    """

    title = "largest difference relative to scale"

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        if not a.size:
            return float("nan")
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            difference = np.abs(a - b)
            scale = rms(a) + np.abs(a)
            ratio = np.where(difference == 0, 0.0, difference / scale)
        return float(np.max(ratio))


def rms(array: Floats) -> float:
    """Root mean square, without overflow."""
    peak = float(np.max(np.abs(array)))
    return peak * float(np.sqrt(np.mean((array / peak) ** 2))) if peak > 0 else 0.0
