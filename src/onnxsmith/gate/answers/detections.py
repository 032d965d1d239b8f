"""Compares detections: boxes are matched by their overlap, whatever their order, then labels and scores compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxsmith.base.words import several
from onnxsmith.gate.answers.base import Counts, Difference, Kind, Limits, distance

_BOXES = {"boxes": "xyxy", "bboxes": "xyxy", "xyxy": "xyxy", "xywh": "xywh", "cxcywh": "cxcywh"}
"""Maps a key of an answer to the form of its boxes: corners, a corner and a size, a centre and a size."""
_SCORES = ("scores", "score", "conf", "confidence", "confidences")
_LABELS = ("labels", "label", "classes", "class", "cls", "class_ids", "names")
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_SAME_PLACE = 0.5
"""The overlap from which a box without a partner is said to have moved. A choice, as in most measures of detectors."""
_STEP = 1.0
"""How far a coordinate that is a whole number may be: rounding may go to either neighbour."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Found:
    """Detections: `boxes` as corners [N, 4], `scores` [N] and `labels` [N], each None if the answer has none."""

    boxes: Array
    scores: Array | None
    labels: tuple[Any, ...] | None
    is_whole: bool
    """Whether every coordinate is a whole number."""


class Detections(Kind):
    rank = 10

    def fits(self, answer: Any) -> bool:
        return _found(answer) is not None

    def differences(self, ours: Any, theirs: Any, at: str, limits: Limits, counts: Counts) -> Iterator[Difference]:
        a, b = _found(ours), _found(theirs)
        assert a is not None
        assert b is not None
        overlaps = _overlaps(a.boxes, b.boxes)
        near = overlaps >= limits.overlap
        if a.is_whole and b.is_whole:
            near |= np.abs(a.boxes[:, None] - b.boxes[None]).max(-1, initial=0.0) <= _STEP
        pairs = _matched(overlaps, near & _alike(a.labels, b.labels))
        counts.add(
            len(pairs),
            max(
                (
                    float((1 - overlaps[m, n]) / (1 - limits.overlap))
                    for m, n in pairs
                    if limits.overlap < 1 and overlaps[m, n] >= limits.overlap
                ),
                default=0.0,
            ),
        )
        lost = [n for n in range(len(a.boxes)) if n not in {m for m, _ in pairs}]
        extra = [n for n in range(len(b.boxes)) if n not in {m for _, m in pairs}]
        if len(a.boxes) != len(b.boxes):
            yield Difference(at, "count", f"{several(len(a.boxes), 'box', 'boxes')} and {len(b.boxes)}")
        for one in lost:
            nearest = max(extra, key=lambda other: overlaps[one, other], default=None)
            if nearest is not None and overlaps[one, nearest] >= _SAME_PLACE:
                extra.remove(nearest)
                yield Difference(f"{at}[{one}]", "box", _moved(a, b, one, nearest, float(overlaps[one, nearest])))
            else:
                yield Difference(f"{at}[{one}]", "box", f"{_said(a, one)} is in the first answer only")
        for other in extra:
            yield Difference(f"{at}[{other}]", "box", f"{_said(b, other)} is in the second answer only")
        if a.scores is not None and b.scores is not None:
            for m, n in pairs:
                score, apart = float(a.scores[m]), distance(float(a.scores[m]), float(b.scores[n]))
                if apart > limits.of_scores * (max(1.0, abs(score)) if np.isfinite(score) else 1.0):
                    yield Difference(f"{at}[{m}]", "score", f"{a.scores[m]:.4g} and {b.scores[n]:.4g} of {_said(a, m)}")


def _found(answer: Any) -> _Found | None:
    """Returns the detections in an answer: a mapping of arrays, an object with `xyxy`, `conf` and `cls`, or a list of
    mappings with one `box` each; None for other answers."""
    if isinstance(answer, Mapping):
        key = next((key for key in _BOXES if key in answer and _is_boxes(answer[key])), None)
        if key is None:
            return None
        return _of(answer[key], _BOXES[key], _first_of(answer, _SCORES), _first_of(answer, _LABELS))
    if hasattr(answer, "xyxy") and hasattr(answer, "conf") and _is_boxes(answer.xyxy):
        return _of(answer.xyxy, "xyxy", answer.conf, getattr(answer, "cls", None))
    is_list = isinstance(answer, Sequence) and not isinstance(answer, str | bytes) and bool(answer)
    if is_list and all(isinstance(one, Mapping) and _has_corners(one.get("box")) for one in answer):
        boxes = [[one["box"][corner] for corner in _CORNERS] for one in answer]
        scores = [one.get("score") for one in answer]
        return _of(boxes, "xyxy", None if None in scores else scores, [one.get("label") for one in answer])
    return None


def _has_corners(box: Any) -> bool:
    return isinstance(box, Mapping) and all(corner in box for corner in _CORNERS)


def _of(boxes: Any, form: str, scores: Any, labels: Any) -> _Found:
    found = np.asarray(boxes, np.float64).reshape(-1, 4)
    is_whole = bool((found == np.rint(found)).all())
    if form == "xywh":
        found = np.concatenate([found[:, :2], found[:, :2] + found[:, 2:]], 1)
    elif form == "cxcywh":
        found = np.concatenate([found[:, :2] - found[:, 2:] / 2, found[:, :2] + found[:, 2:] / 2], 1)
    held = None if scores is None else np.asarray(scores, np.float64).reshape(-1)
    named = None if labels is None else tuple(np.asarray(labels).reshape(-1).tolist())
    held = held if held is not None and len(held) == len(found) else None
    return _Found(found, held, named if named is not None and len(named) == len(found) else None, is_whole)


def _is_boxes(value: Any) -> bool:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError):
        return False
    return array.dtype.kind in "fiu" and array.ndim == 2 and array.shape[1] == 4


def _first_of(answer: Mapping[Any, Any], keys: Sequence[str]) -> Any:
    return next((answer[key] for key in keys if key in answer), None)


def _overlaps(a: Array, b: Array) -> Array:
    """Returns the intersection over union of each box of `a` with each of `b`, [N, M]. Two equal boxes have 1, also
    without an area."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    inside = np.clip(high - low, 0, None).prod(-1)
    areas = [np.abs((boxes[:, 2:] - boxes[:, :2]).prod(-1)) for boxes in (a, b)]
    union = areas[0][:, None] + areas[1][None] - inside
    found = np.divide(inside, union, out=np.zeros_like(inside), where=union > 0)
    equal = (a[:, None] == b[None]).all(-1)
    return np.where(equal, 1.0, found)


def _alike(ours: tuple[Any, ...] | None, theirs: tuple[Any, ...] | None) -> Any:
    if ours is None or theirs is None:
        return True
    return np.array([[one == other for other in theirs] for one in ours], bool).reshape(len(ours), len(theirs))


def _matched(overlaps: Array, may: Array) -> list[tuple[int, int]]:
    """Returns pairs of boxes, those that overlap most first, each box once."""
    places = sorted(np.argwhere(may).tolist(), key=lambda place: -overlaps[place[0], place[1]])
    ours: set[int] = set()
    theirs: set[int] = set()
    found = []
    for m, n in places:
        if m not in ours and n not in theirs:
            ours.add(m)
            theirs.add(n)
            found.append((m, n))
    return found


def _said(found: _Found, at: int) -> str:
    box = ", ".join(f"{number:.5g}" for number in found.boxes[at])
    label = f" {found.labels[at]!r}" if found.labels is not None else ""
    score = f" with score {found.scores[at]:.3g}" if found.scores is not None else ""
    return f"box{label} [{box}]{score}"


def _moved(a: _Found, b: _Found, one: int, other: int, overlap: float) -> str:
    if a.labels is not None and b.labels is not None and a.labels[one] != b.labels[other]:
        return f"the label is {a.labels[one]!r} and {b.labels[other]!r} of {_said(a, one)}"
    return f"{_said(a, one)} and {_said(b, other)} overlap by {overlap:.3f}"
