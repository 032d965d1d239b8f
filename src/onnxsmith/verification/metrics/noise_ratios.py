"""Measures ratios of signal to noise, in decibels."""

from __future__ import annotations

import numpy as np

from onnxsmith.verification.metrics.base import Array, Metric, finite, scaled
from onnxsmith.verification.metrics.distances import rms


class Sqnr(Metric):
    """Computes 10 log10(Σ reference² / Σ (reference - candidate)²), in decibels, the usual measure of a quantised
    layer.

    The ratio is infinite for equal arrays, and minus infinity if only the reference is zero. One bit is 6.02 dB (20
    log10 2).
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


class Psnr(Metric):
    """Computes 10 log10(peak² / mean (reference - candidate)²), in decibels (ITU-T J.340), over all channels at once.

    The peak of integers is the largest of their dtype, 255 for uint8. The peak of floats is the range of the reference,
    its largest minus its smallest element. The ratio is infinite for equal arrays, and minus infinity for a constant
    reference.
    """

    title = "peak signal to noise"
    unit = "dB"
    better = "higher"
    equal = float("inf")

    def applies(self, reference: Array) -> bool:
        """Whether the array may be an image or a batch of images: three dimensions or more, and neither bools nor
        complex numbers."""
        return super().applies(reference) and reference.ndim >= 3 and reference.dtype.kind not in "bc"

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        if not a.size:
            return float("nan")
        a, b, largest = scaled(a, b)
        noise = rms(a - b)
        if noise == 0:
            return float("inf")
        whole = reference.dtype.kind in "iu"
        peak = float(np.iinfo(reference.dtype).max) / largest if whole else float(a.max() - a.min())
        return 20 * float(np.log10(peak) - np.log10(noise)) if peak else float("-inf")
