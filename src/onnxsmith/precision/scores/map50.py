"""The mean average precision of detected boxes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.precision.scores.base import Pairs, Score, is_whole, mean, said

_OVERLAP = 0.5
_PARTS = 2


class Map50(Score):
    """The mean over classes of the area under precision and recall, where a box counts as found from an intersection
    over union of .5 on; all points of the curve, as in PASCAL VOC since 2010.

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
