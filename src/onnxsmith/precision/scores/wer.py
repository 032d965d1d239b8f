"""The word error rate."""

from __future__ import annotations

from onnxsmith.precision.scores.base import Pairs, Score, distance, text


class Wer(Score):
    """Edits of words that make the predicted texts the expected ones, divided by the words of these."""

    title = "word error rate"
    better = "lower"
    expects = "a text, from --decode file.py:function"

    def value(self, pairs: Pairs) -> float:
        edits, length = 0, 0
        for found, wanted in pairs:
            words = str(wanted).split()
            edits += distance(text(found).split(), words)
            length += len(words)
        return edits / length if length else float("nan")
