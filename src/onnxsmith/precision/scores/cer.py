"""The character error rate."""

from __future__ import annotations

from onnxsmith.precision.scores.base import Pairs, Score, distance, text


class Cer(Score):
    """Edits of characters that make the predicted texts the expected ones, divided by the characters of these."""

    title = "character error rate"
    better = "lower"
    expects = "a text, from --decode file.py:function"

    def value(self, pairs: Pairs) -> float:
        edits, length = 0, 0
        for found, wanted in pairs:
            edits += distance(text(found), str(wanted))
            length += len(str(wanted))
        return edits / length if length else float("nan")
