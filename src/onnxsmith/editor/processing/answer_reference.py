"""Processes the outputs of a model with numpy, to compare the nodes of a graph with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from onnxsmith.editor.processing.answer_rules import AnswerRules

Numbers = npt.NDArray[Any]


def answers(arrays: list[Numbers], rules: AnswerRules) -> list[Numbers]:
    """Returns what the nodes give for the outputs of the model; probabilities in float64."""
    if rules.method == "nms":
        return _detections(arrays[0], arrays[1], rules)
    scores = arrays[0].astype(np.float64)
    if rules.method == "argmax":
        return [np.argmax(scores, rules.axis)]
    if rules.method == "softmax":
        return [_softmax(scores, rules.axis)]
    best = np.argsort(-scores, axis=rules.axis, kind="stable")  # of equal scores, the first
    best = np.take(best, np.arange(min(rules.top, scores.shape[rules.axis])), rules.axis)
    values = _softmax(scores, rules.axis) if rules.softmax else scores
    return [np.take_along_axis(values, best, rules.axis), best]


def _softmax(scores: Numbers, axis: int) -> Numbers:
    powers = np.exp(scores - scores.max(axis, keepdims=True))
    found: Numbers = powers / powers.sum(axis, keepdims=True)
    return found


def _detections(boxes: Numbers, scores: Numbers, rules: AnswerRules) -> list[Numbers]:
    scores = scores if rules.classes_axis == 1 else scores.transpose(0, 2, 1)
    corners = _corners(boxes.astype(np.float64)) if rules.centred else boxes.astype(np.float64)
    rows = [
        (picture, kind, box)
        for picture in range(scores.shape[0])
        for kind in range(scores.shape[1])
        for box in _kept(corners[picture], scores[picture, kind].astype(np.float64), rules)
    ]
    pictures, kinds, places = np.array(rows, np.int64).reshape(-1, 3).T
    return [boxes[pictures, places], scores[pictures, kinds, places], kinds, pictures]


def _corners(boxes: Numbers) -> Numbers:
    middle, half = boxes[..., :2], boxes[..., 2:] / 2
    return np.concatenate([middle - half, middle + half], -1)


def _kept(boxes: Numbers, scores: Numbers, rules: AnswerRules) -> list[int]:
    """Returns the boxes of one class that stay, the best first: greedy suppression."""
    left = [int(box) for box in np.argsort(-scores, kind="stable") if scores[box] > rules.least_score]
    kept: list[int] = []
    while left and len(kept) < rules.most:
        best, *others = left
        kept.append(best)
        overlaps = _overlap(boxes[best], boxes[others])
        left = [box for box, overlap in zip(others, overlaps, strict=True) if overlap <= rules.overlap]
    return kept


def _overlap(box: Numbers, others: Numbers) -> Numbers:
    """Returns the intersection over union of a box with each of the others, 0 without an area. The two corners of a box
    may be any two that face each other."""
    low, high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    lows, highs = np.minimum(others[:, :2], others[:, 2:]), np.maximum(others[:, :2], others[:, 2:])
    common = np.clip(np.minimum(high, highs) - np.maximum(low, lows), 0, None).prod(-1)
    total = (high - low).prod() + (highs - lows).prod(-1) - common
    found: Numbers = np.divide(common, total, out=np.zeros_like(common), where=total > 0)
    return found
