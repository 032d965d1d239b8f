"""The cosine similarity of vectors."""

from __future__ import annotations

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
