"""Scores predictions: classes, tokens, boxes, texts, and how similar they are to their labels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.precision.scores.base import Pairs, Score, distance, is_whole, mean, said, text, unlike, unlike_text
from onnxsmith.verification.metrics.base import Floats


class Top1(Score):
    """The share of samples whose most likely class is the label. If an output has several rows, each row counts."""

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
    """Returns the number of classes in the first output; 0 if it has no scores of classes."""
    if not outputs:
        return 0
    first = np.asarray(next(iter(outputs.values())))
    return int(first.shape[-1]) if first.dtype.kind == "f" and first.ndim else 0


class Perplexity(Score):
    """The exponential of the mean negative log-likelihood of the expected tokens (natural logarithm).

    A prediction has the scores of the vocabulary before softmax, […, tokens, vocabulary]. Its label has the expected
    token at each position, or a negative number for none. Without labels, a prediction with one axis is taken as
    log-likelihoods; for other predictions the given model's most likely tokens are the labels.
    """

    title = "perplexity"
    better = "lower"
    expects = "logits, with the expected token at each place as the label"

    def as_label(self, prediction: Any) -> Any:
        scores = np.asarray(prediction)
        return np.argmax(scores, axis=-1) if scores.ndim > 1 else None

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        tokens, scores = np.ravel(np.asarray(label)), np.asarray(prediction)
        if not is_whole(tokens):
            return f"is {said(label)}, not the numbers of tokens"
        rows, vocabulary = scores.size // max(1, scores.shape[-1]), scores.shape[-1]
        if tokens.size != rows:
            return f"has {tokens.size:,} tokens, the prediction has {rows:,}"
        if tokens.size and int(tokens.max()) >= vocabulary:
            return f"has the token {int(tokens.max())}; the vocabulary of the prediction ends at {vocabulary - 1}"
        return "" if (tokens >= 0).any() else "has no token, all numbers are negative"

    def value(self, pairs: Pairs) -> float:
        total, count = 0.0, 0
        for found, wanted in pairs:
            scores = np.asarray(found, np.float64)
            if wanted is not None:
                tokens = np.ravel(np.asarray(wanted)).astype(np.int64)
                flat = scores.reshape(-1, scores.shape[-1])[tokens >= 0]
                tokens = tokens[tokens >= 0]
                peak = flat.max(axis=-1, keepdims=True)
                norm = np.log(np.exp(flat - peak).sum(axis=-1)) + peak[:, 0]
                scores = flat[np.arange(len(tokens)), tokens] - norm
            total -= float(scores.sum())
            count += scores.size
        return _exp(total / count) if count else float("nan")


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


_OVERLAP = 0.5
_PARTS = 2


class Map50(Score):
    """The mean over classes of the area under the precision-recall curve, with all its points, as in PASCAL VOC since
    2010. A box counts as found if its intersection over union is at least .5.

    A prediction is (boxes [n, 4] as x1, y1, x2, y2; scores [n]; classes [n]), a label (boxes; classes).
    """

    title = "mAP at .5"
    worst = 0.0
    expects = "boxes, scores and classes, from --decode file.py:function; the label is boxes and classes"

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        if not isinstance(label, tuple | list) or len(label) != _PARTS:
            return f"is {said(label)}, not boxes and classes"
        boxes, classes = np.asarray(label[0]), np.ravel(np.asarray(label[1]))
        if boxes.dtype.kind not in "iuf" or boxes.size != 4 * classes.size or not is_whole(classes):
            return f"has boxes {said(boxes)} and classes {said(classes)}, not four numbers and a whole number for each"
        return ""

    def value(self, pairs: Pairs) -> float:
        hits: dict[int, list[tuple[float, bool]]] = defaultdict(list)
        wanted: dict[int, int] = defaultdict(int)
        for (boxes, scores, classes), (true_boxes, true_classes) in pairs:
            free = {index: int(kind) for index, kind in enumerate(np.ravel(true_classes))}
            for kind in free.values():
                wanted[kind] += 1
            for index in np.argsort(-np.ravel(scores), kind="stable"):
                kind = int(np.ravel(classes)[index])
                overlaps = {
                    one: _overlap(np.reshape(boxes, (-1, 4))[index], np.reshape(true_boxes, (-1, 4))[one])
                    for one, other in free.items()
                    if other == kind
                }
                best = max(overlaps, key=overlaps.__getitem__, default=None)
                found = best is not None and overlaps[best] >= _OVERLAP
                if found and best is not None:
                    del free[best]
                hits[kind].append((float(np.ravel(scores)[index]), found))
        return mean(_area(hits[kind], count) for kind, count in wanted.items())


def _overlap(a: Any, b: Any) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    shared = float(np.prod(np.maximum(high - low, 0)))
    both = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - shared
    return shared / both if both > 0 else 0.0


def _area(hits: list[tuple[float, bool]], count: int) -> float:
    ordered = [found for _, found in sorted(hits, key=lambda one: -one[0])]
    right = np.cumsum(ordered) if ordered else np.zeros(0)
    precision = right / np.arange(1, len(ordered) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(envelope * np.asarray(ordered, float)) / count)


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


_PEAKS = (1.0, 255.0, 65535.0)
"""The peaks of images in floats, in 8 bits and in 16 bits."""
_ROOM = 1.5
"""How far a label may exceed a peak. A choice: images that are computed overshoot."""
_MOST = 120.0
"""Decibels for equal images. A choice: rounding to float32 is near 140."""


class Psnr(Score):
    """The mean over images of 10·log10(peak² / mean squared error), in decibels. All images have one peak: the least of
    1, 255 and 65535 that no label exceeds by more than half, or else the largest label."""

    title = "PSNR in dB"
    cap = _MOST
    expects = "an image, as large as the label"
    needs_data = False

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        return unlike(prediction, label)

    def value(self, pairs: Pairs) -> float:
        errors, largest = [], 0.0
        for found, label in pairs:
            wanted = np.asarray(label, np.float64)
            largest = max(largest, float(np.max(wanted, initial=0.0)))
            errors.append(float(np.mean((np.asarray(found, np.float64).reshape(wanted.shape) - wanted) ** 2)))
        peak = next((one for one in _PEAKS if largest <= _ROOM * one), largest)
        return mean(min(_MOST, 10 * math.log10(peak**2 / error)) if error else _MOST for error in errors)


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
