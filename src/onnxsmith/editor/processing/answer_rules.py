"""Says what becomes of the outputs of a model: the best class, probabilities, the best few, or boxes of detections."""

from __future__ import annotations

from dataclasses import dataclass

METHODS = ("argmax", "softmax", "top-k", "nms")


@dataclass(frozen=True)
class AnswerRules:
    """Holds the rules.

    "argmax", "softmax" and "top-k" work along `axis` of scores; "top-k" gives the `top` best values and their indices,
    as probabilities if `softmax` is true. "nms" takes boxes [batch, boxes, 4] and scores, with the classes on the axis
    `classes_axis`, 1 or 2. For each class it keeps at most `most` boxes, the best first, of those whose score is above
    `least_score`, and drops a box that overlaps a kept one by more than `overlap` (intersection over union). `centred`
    boxes are [x, y, width, height] of their middle, others two corners.
    """

    method: str
    axis: int = -1
    top: int = 5
    softmax: bool = True
    overlap: float = 0.5
    least_score: float = 0.0
    most: int = 100
    centred: bool = False
    classes_axis: int = 1

    @property
    def gives_probabilities(self) -> bool:
        """Whether the first answer is computed by a softmax."""
        return self.method == "softmax" or (self.method == "top-k" and self.softmax)
