"""The share of right classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.precision.scores.base import Numbers, Pairs, Score, is_whole, mean, said


class Top1(Score):
    """The share of samples whose most likely class is the label. Over several rows, each counts."""

    title = "top-1 accuracy"
    worst = 0.0
    expects = "a class index; by default the largest element along the last axis of the first output"

    def predicted(self, outputs: Mapping[str, Any]) -> Any:
        first = np.asarray(next(iter(outputs.values())))
        return np.argmax(first, axis=-1) if first.dtype.kind == "f" and first.ndim else first

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        found, wanted = np.ravel(np.asarray(prediction)), np.ravel(np.asarray(label))
        if found.dtype.kind in "biuf" and not is_whole(wanted):
            return f"is {said(label)}, not the number of a class"
        if found.dtype.kind in "OUS" and wanted.dtype.kind not in "OUS":
            return f"is {said(label)}, while the predictions are texts such as {said(found[:1])}"
        if wanted.size not in (1, found.size):
            return f"has {wanted.size:,} numbers, the prediction has {found.size:,}"
        classes = _classes(outputs)
        outside = [one for one in wanted.tolist() if not 0 <= one < classes] if classes else []
        return f"is {said(outside[0])}; the classes of the first output are 0 to {classes - 1}" if outside else ""

    def value(self, pairs: Pairs) -> float:
        return mean(float(np.mean(np.ravel(np.asarray(a)) == np.ravel(np.asarray(b)))) for a, b in pairs)


def _classes(outputs: Mapping[str, Any] | None) -> int:
    """How many classes the first output has scores of; 0 if it is none of scores."""
    first: Numbers = np.asarray(next(iter(outputs.values()))) if outputs else np.zeros(())
    return first.shape[-1] if first.dtype.kind == "f" and first.ndim else 0
