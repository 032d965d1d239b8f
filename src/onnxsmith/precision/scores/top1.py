"""The share of right classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.precision.scores.base import Pairs, Score, mean


class Top1(Score):
    """The share of samples whose most likely class is the label. Over several rows, each counts."""

    title = "top-1 accuracy"
    expects = "a class index; by default the largest element along the last axis of the first output"

    def predicted(self, outputs: Mapping[str, Any]) -> Any:
        first = np.asarray(next(iter(outputs.values())))
        return np.argmax(first, axis=-1) if first.dtype.kind == "f" and first.ndim else first

    def value(self, pairs: Pairs) -> float:
        return mean(float(np.mean(np.ravel(np.asarray(a)) == np.ravel(np.asarray(b)))) for a, b in pairs)
