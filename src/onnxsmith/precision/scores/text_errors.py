"""Computes error rates of predicted texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxsmith.precision.scores.base import Pairs, Score, distance, text, unlike_text


class Cer(Score):
    """The character edits that turn the predicted texts into the expected texts, divided by the characters of the
    expected texts."""

    title = "character error rate"
    better = "lower"
    worst = 1.0
    expects = "a text, from --decode file.py:function"

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        return unlike_text(label)

    def value(self, pairs: Pairs) -> float:
        edits, length = 0, 0
        for found, wanted in pairs:
            edits += distance(text(found), str(wanted))
            length += len(str(wanted))
        return edits / length if length else float("nan")


class Wer(Score):
    """The word edits that turn the predicted texts into the expected texts, divided by the words of the expected
    texts."""

    title = "word error rate"
    better = "lower"
    worst = 1.0
    expects = "a text, from --decode file.py:function"

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        return unlike_text(label)

    def value(self, pairs: Pairs) -> float:
        edits, length = 0, 0
        for found, wanted in pairs:
            words = str(wanted).split()
            edits += distance(text(found).split(), words)
            length += len(words)
        return edits / length if length else float("nan")
