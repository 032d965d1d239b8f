"""The largest difference relative to the output's scale."""

from __future__ import annotations

import numpy as np

from onnxsmith.verification.metrics.base import Array, Metric, blocks, finite


class MaxRel(Metric):
    """max |reference - candidate| / (rms(reference) + |reference|); 0 where both are zero.

    With the root mean square, elements that cancel to almost nothing do not dominate. With the element's own size, an
    exceptionally large element is not judged by the scale of the others.
    """

    title = "largest difference relative to scale"

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        if not a.size:
            return float("nan")
        return largest(a, b, rms(a))[1]


def largest(reference: Array, candidate: Array, scale: float) -> tuple[float, float]:
    """The largest difference of finite floats, and the largest relative to `scale` plus the reference's own size; 0 if
    there is no difference."""
    absolute = over = 0.0
    for a, b in blocks(reference, candidate):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            apart = np.abs(a - b)
            ratio = apart / (np.abs(a) + scale)
        if scale == 0:  # 0 / 0 for equal elements
            ratio[apart == 0] = 0.0
        absolute, over = max(absolute, float(np.max(apart))), max(over, float(np.max(ratio)))
    return absolute, over


def rms(array: Array) -> float:
    """Root mean square of finite floats, without overflow."""
    pieces = [(float(np.max(a)), float(np.min(a))) for (a,) in blocks(array)]
    peak = max((max(high, -low) for high, low in pieces), default=0.0)
    if not peak > 0:
        return 0.0
    squares = (np.einsum("i,i->", a / peak, a / peak) for (a,) in blocks(array))
    return peak * float(np.sqrt(sum(squares) / array.size))
