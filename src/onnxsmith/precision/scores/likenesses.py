"""Measures how similar outputs are to their labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.precision.scores.base import Pairs, Score, mean, unlike
from onnxsmith.verification.metrics.base import Floats


class Cosine(Score):
    """The mean over samples of the cosine of the angle between the prediction and the label, both flattened."""

    title = "cosine similarity"
    worst = 0.0
    expects = "a vector, as long as the label"
    needs_data = False

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        return unlike(prediction, label)

    def value(self, pairs: Pairs) -> float:
        return mean(_cosine(np.ravel(np.asarray(a, np.float64)), np.ravel(np.asarray(b, np.float64))) for a, b in pairs)


def _cosine(a: Floats, b: Floats) -> float:
    scale = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / scale if scale else float(not a.any() and not b.any())


_UNIT = 1.5
"""A label with a value above this is in 0..255, else in 0..1. A choice."""
_MOST = 120.0
"""Decibels for equal images. A choice: rounding to float32 is near 140."""


class Psnr(Score):
    """The mean over images of 10·log10(peak² / mean squared error), in decibels; the peak is 255 for labels with larger
    values than 1.5, else 1."""

    title = "PSNR in dB"
    expects = "an image, as large as the label"
    needs_data = False

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        return unlike(prediction, label)

    def value(self, pairs: Pairs) -> float:
        return mean(_psnr(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in pairs)


def _psnr(found: Floats, wanted: Floats) -> float:
    peak = 255.0 if wanted.size and float(np.max(wanted)) > _UNIT else 1.0
    error = float(np.mean((found.reshape(wanted.shape) - wanted) ** 2))
    return min(_MOST, 10 * math.log10(peak**2 / error)) if error > 0 else _MOST
