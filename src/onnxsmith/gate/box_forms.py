"""Reads detections from an answer: its boxes, and what else it says of each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.gate.plain_answers import is_list, plain

Array = npt.NDArray[Any]

ABSENT = object()
"""Stands for a key that one mapping of a list has not."""
_BOXES = {"boxes": "xyxy", "bboxes": "xyxy", "xyxy": "xyxy", "xywh": "xywh", "cxcywh": "cxcywh"}
"""Maps a key of an answer to the form of its boxes: corners, a corner and a size, a centre and a size."""
_SCORES = ("scores", "score", "conf", "confidence", "confidences")
_LABELS = ("labels", "label", "classes", "class", "cls", "class_ids", "class_id", "names")
_CORNERS = (("xmin", "ymin", "xmax", "ymax"), ("x1", "y1", "x2", "y2"))
_OF_THE_WHOLE = ("size", "shape")
"""Are parts of keys whose two numbers are of the picture, also if there are two boxes."""


@dataclass(frozen=True)
class Column:
    """What an answer says of each box under one key: `values` has one value a box."""

    key: str
    values: tuple[Any, ...]
    shape: tuple[int, ...]

    def is_like(self, other: Column | None) -> bool:
        """Whether another answer says this under the same key, in the same shape."""
        return other is not None and self.key == other.key and self.shape[1:] == other.shape[1:]


@dataclass(frozen=True)
class Found:
    """Detections. `form` is `list`, `mapping` or `object`, and `key` the name of the boxes in it. `boxes` are corners,
    [N, 4]. `values` has everything by key, `corners` the names of the corners if they have some."""

    form: str
    key: str
    boxes: Array
    values: Mapping[Any, Any]
    corners: tuple[str, ...] = ()
    is_whole: bool = False
    """Whether every coordinate is a whole number, and some are above 1: others are shares of the picture."""

    @cached_property
    def scores(self) -> Column | None:
        """The scores, one number a box."""
        return next((one for one in map(self._column, _SCORES) if one and all(map(_is_number, one.values))), None)

    @cached_property
    def labels(self) -> Column | None:
        """The labels, one text or number a box."""
        return next(filter(None, map(self._column, _LABELS)), None)

    def place(self, at: str, key: Any, row: int | None = None) -> str:
        """Returns the place of a key, or of what it says of one box, as Python would reach it."""
        if self.form == "list":
            return f"{at}[{row}][{key!r}]"
        return f"{at}{f'.{key}' if self.form == 'object' else f'[{key!r}]'}{'' if row is None else f'[{row}]'}"

    def of_boxes(self, key: Any, value: Any) -> Any:
        """Returns what the value of `key` says of the boxes, one entry each, as an array or a list; None if it is not
        about single boxes."""
        value = plain(value)
        if any(word in str(key).lower() for word in _OF_THE_WHOLE) and self.form != "list":
            return None
        is_rows = is_list(value) or (isinstance(value, np.ndarray) and value.ndim > 0)
        return value if is_rows and len(value) == len(self.boxes) else None

    def more_boxes(self, key: Any) -> Array | None:
        """Returns the boxes under a further key, as corners; None if there are none."""
        boxes = _boxes(self.values[key]) if key in _BOXES and self.form != "list" else None
        return _as_corners(boxes, _BOXES[key]) if boxes is not None and len(boxes) == len(self.boxes) else None

    def _column(self, key: str) -> Column | None:
        if key not in self.values:
            return None
        value = plain(self.values[key])
        if isinstance(value, np.ndarray):
            if value.shape not in ((len(self.boxes),), (len(self.boxes), 1)) or value.dtype.kind not in "fiubSU":
                return None
            return Column(key, tuple(value.reshape(-1).tolist()), value.shape)
        if not is_list(value) or len(value) != len(self.boxes):
            return None
        items = tuple(
            one.item() if isinstance(one, np.ndarray | np.generic) and one.ndim == 0 else one
            for one in map(plain, value)
        )
        is_plain = all(isinstance(one, str | bytes | int | float) for one in items)
        return Column(key, items, (len(items),)) if is_plain else None


def found(answer: Any) -> Found | None:
    """Returns the detections in an answer: a mapping of arrays, an object with `xyxy` and `conf`, or a list of mappings
    with a `box` each; None for other answers."""
    if isinstance(answer, Mapping):
        for key in _BOXES:
            boxes = _boxes(answer[key]) if key in answer else None
            if boxes is not None:
                return Found("mapping", key, _as_corners(boxes, _BOXES[key]), answer, (), _is_whole(boxes))
        return None
    if is_list(answer):
        return _of_list(answer)
    if hasattr(answer, "xyxy") and hasattr(answer, "conf"):
        boxes = _boxes(answer.xyxy)
        return None if boxes is None else Found("object", "xyxy", boxes, _attributes(answer), (), _is_whole(boxes))
    return None


def _of_list(answer: Sequence[Any]) -> Found | None:
    items = [plain(one) for one in answer]
    if not items or not all(isinstance(one, Mapping) and "box" in one for one in items):
        return None
    boxes = [plain(one["box"]) for one in items]
    corners: tuple[str, ...] = ()
    if all(isinstance(one, Mapping) for one in boxes):
        corners = next((names for names in _CORNERS if all(set(box) == set(names) for box in boxes)), ())
        boxes = [[box[name] for name in corners] for box in boxes]
    read = _boxes(boxes)
    if read is None or not len(read):
        return None
    keys = dict.fromkeys(key for one in items for key in one)
    columns = {key: [one.get(key, ABSENT) for one in items] for key in keys}
    return Found("list", "box", read, columns, corners, _is_whole(read))


def _attributes(answer: Any) -> dict[str, Any]:
    """Returns what an object says of its boxes. `data` is left out if `xyxy` is computed from it."""
    stored = {name: one for name, one in getattr(answer, "__dict__", {}).items() if not name.startswith("_")}
    if "xyxy" not in stored:
        stored.pop("data", None)
    named = ("xyxy", "conf", "cls", "id")
    return {**{name: getattr(answer, name) for name in named if getattr(answer, name, None) is not None}, **stored}


def _boxes(value: Any) -> Array | None:
    """Returns boxes as they are, [N, 4]; None if a value is no boxes."""
    value = plain(value)
    if is_list(value):
        try:
            value = np.asarray([plain(one) for one in value]) if len(value) else np.zeros((0, 4))
        except (ValueError, TypeError, RuntimeError):
            return None
    is_boxes = isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim == 2 and value.shape[1] == 4
    return value.astype(np.float64) if is_boxes else None


def _as_corners(boxes: Array, form: str) -> Array:
    if form == "xywh":
        return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1)
    if form == "cxcywh":
        return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)
    return boxes


def _is_whole(boxes: Array) -> bool:
    finite = boxes[np.isfinite(boxes)]
    return bool((finite == np.rint(finite)).all()) and float(np.abs(finite).max(initial=0.0)) > 1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
