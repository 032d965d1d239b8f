"""The ratio of signal to quantisation noise."""

from __future__ import annotations

import numpy as np

from onnxsmith.verification.metrics.base import Array, Metric, finite, scaled
from onnxsmith.verification.metrics.max_rel import rms


class Sqnr(Metric):
    """10 log10(Σ reference² / Σ (reference - candidate)²), in decibels, the usual measure of a quantised layer.

    Infinite for equal arrays, minus infinity if only the reference is zero. One bit is 6.02 dB (20 log10 2).
    """

    title = "signal to quantisation noise"
    unit = "dB"
    better = "higher"
    equal = float("inf")

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        if not a.size:
            return float("nan")
        a, b, _ = scaled(a, b)
        noise, signal = rms(a - b), rms(a)
        if noise == 0:
            return float("inf")
        return 20 * float(np.log10(signal) - np.log10(noise)) if signal else float("-inf")
