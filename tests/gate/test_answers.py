"""Answers of predict functions: what is the same passes, and each kind of difference is found and named."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxsmith.gate.answer_comparison import differences
from onnxsmith.gate.answers.base import Counts, Limits

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 5)).astype(np.float32)
BOXES = np.array([[0.0, 0, 100, 100], [50, 60, 90, 80], [10, 10, 30, 40]])
SCORES = np.array([0.9, 0.8, 0.7])
LABELS = np.array([1, 2, 2])
Pair = namedtuple("Pair", "left right")
Colour = Enum("Colour", "RED BLUE")


@dataclass
class Read:
    text: str
    scores: Any


class Boxes:
    """Detections as an object with tensors, the way detectors of PyTorch give them."""

    def __init__(self, xyxy: Any, conf: Any, cls: Any) -> None:
        self.xyxy, self.conf, self.cls = xyxy, conf, cls


def detections(boxes: Any = BOXES, scores: Any = SCORES, labels: Any = LABELS) -> dict[str, Any]:
    return {"boxes": boxes, "scores": scores, "labels": labels}


def moved(by: float, at: int = 0) -> Any:
    boxes = BOXES.copy()
    boxes[at] += by
    return boxes


def as_list(found: dict[str, Any]) -> list[dict[str, Any]]:
    corners = ("xmin", "ymin", "xmax", "ymax")
    rows = zip(found["boxes"].tolist(), found["scores"].tolist(), found["labels"].tolist(), strict=True)
    return [{"box": dict(zip(corners, box, strict=True)), "score": score, "label": str(n)} for box, score, n in rows]


TURNED = np.array([2, 0, 1])
SAME = {
    "rounding": (X, X * np.float32(1 + 1e-6)),
    "nan and inf in the same places": (np.array([np.nan, np.inf, 1.0]), np.array([np.nan, np.inf, 1.0])),
    "half": (X.astype(np.float16), (X * 1.002).astype(np.float16)),
    "float scalars": (0.1 + 0.2, 0.3),
    "lists of floats": ([0.1, 0.2], [0.1, 0.2 + 1e-9]),
    "texts": ("a dog", "a dog"),
    "nested": ({"a": [X, "b"], "c": None}, {"c": None, "a": [X.copy(), "b"]}),
    "dataclass": (Read("a", X), Read("a", X.copy())),
    "named tuple": (Pair(1, X), Pair(1, X.copy())),
    "boxes in another order": (detections(), detections(BOXES[TURNED], SCORES[TURNED], LABELS[TURNED])),
    "boxes moved by rounding": (detections(), detections(moved(0.01))),
    "whole boxes moved by one": (detections(), detections(moved(1, 2))),
    "boxes as a list": (as_list(detections()), as_list(detections())[::-1]),
    "boxes of an object": (Boxes(BOXES, SCORES, LABELS), Boxes(BOXES[::-1], SCORES[::-1], LABELS[::-1])),
    "no boxes": (detections(BOXES[:0], SCORES[:0], LABELS[:0]), detections(BOXES[:0], SCORES[:0], LABELS[:0])),
    "scores nearly tied": ({"a": 0.5, "b": 0.5001}, {"b": 0.5, "a": 0.5001}),
    "best two, cut at a tie": ([("a", 0.6), ("b", 0.2)], [("a", 0.6), ("c", 0.2004)]),
    "scores that are no numbers": ({"a": 0.5, "b": np.nan, "c": np.inf}, {"a": 0.5, "b": np.nan, "c": np.inf}),
    "values with equality": ([Path("a"), Colour.RED], [Path("a"), Colour.RED]),
    "labels and scores": ([{"label": "x", "score": 0.9}, {"label": "y", "score": 0.1}],) * 2,
}
OTHER = {
    "one number": (X, np.where(X.max() == X, X * 1.01, X), "numbers"),
    "a shape": (X, X[:, :4], "shape"),
    "a dtype": (X, X.astype(np.float64), "dtype"),
    "a dtype of integers": (np.arange(3), np.arange(3, dtype=np.int32), "dtype"),
    "an array of objects": (np.array([{"a": 1}, "b"]), np.array([{"a": 2}, "b"]), "values"),
    "a field of an array": (np.array([(1, 2.0)], "i4,f4"), np.array([(1, 3.0)], "i4,f4"), "numbers"),
    "a nan": (X, np.where(X.max() == X, np.nan, X), "not finite"),
    "an integer": (np.arange(3), np.array([0, 1, 3]), "values"),
    "a text": ("a dog", "a dot", "text"),
    "a bool for a number": (True, 1, "values"),
    "a key": ({"a": 1}, {"a": 1, "b": 2}, "keys"),
    "a list's length": (["a", "b"], ["a"], "count"),
    "a value with equality": ([Path("a"), Colour.RED], [Path("a"), Colour.BLUE], "values"),
    "a type": ("a", X, "type"),
    "a box more": (detections(BOXES[:2], SCORES[:2], LABELS[:2]), detections(), "count"),
    "a box lost": (detections(), detections(BOXES[:2], SCORES[:2], LABELS[:2]), "count"),
    "a box moved": (detections(), detections(moved(3.3)), "box"),
    "a whole box moved by two": (detections(), detections(moved(2, 2)), "box"),
    "a label": (detections(), detections(labels=np.array([1, 2, 1])), "box"),
    "a score that is no number": (detections(), detections(scores=np.array([0.9, np.nan, 0.7])), "score"),
    "a score by name that is no number": ({"a": 0.5, "b": 0.1}, {"a": 0.5, "b": np.nan}, "score"),
    "a score by name in place of none": ({"a": 0.5, "b": np.nan}, {"a": 0.5, "b": 0.1}, "score"),
    "a score": (detections(), detections(scores=np.array([0.9, 0.8, 0.69])), "score"),
    "the order of labels": (detections(), detections(labels=LABELS[::-1]), "box"),
    "all boxes lost": (detections(), detections(BOXES[:0], SCORES[:0], LABELS[:0]), "count"),
    "a rank": ({"a": 0.6, "b": 0.4}, {"a": 0.4, "b": 0.6}, "score"),
    "another name": ({"a": 0.6, "b": 0.4}, {"a": 0.6, "c": 0.4}, "names"),
    "another best name": ([("a", 0.6), ("b", 0.2)], [("c", 0.6), ("b", 0.2)], "names"),
}


def found(ours: Any, theirs: Any, limits: Limits | None = None) -> tuple[list[str], Counts]:
    counts = Counts()
    return [one.kind for one in differences(ours, theirs, limits or Limits(), counts)], counts


@pytest.mark.parametrize("name", SAME)
def test_the_same_answers_pass(name: str) -> None:
    kinds, counts = found(*SAME[name])
    assert kinds == []
    assert counts.largest <= 1
    assert bool(counts.compared) == (name != "no boxes")


@pytest.mark.parametrize("name", OTHER)
def test_another_answer_is_found(name: str) -> None:
    ours, theirs, kind = OTHER[name]
    assert kind in found(ours, theirs)[0]
    assert found(theirs, ours)[0] != []


def test_a_tolerance_replaces_the_limits_of_numbers() -> None:
    assert found(X, X * 1.01, Limits(tolerance=0.02))[0] == []
    assert found({"a": 0.6, "b": 0.4}, {"a": 0.61, "b": 0.39}, Limits(tolerance=0.02))[0] == []
    assert found(X, X * np.float32(1 + 1e-6), Limits(tolerance=0.0))[0] == ["numbers"]
    assert found(detections(), detections(moved(3.3)), Limits(overlap=0.85))[0] == []


def test_the_largest_difference_is_a_share_of_its_limit() -> None:
    _, counts = found(X, X * np.float32(1 + 5e-5))
    assert 0.4 < counts.largest < 0.6
    assert counts.compared == X.size


@pytest.mark.torch
def test_tensors_that_numpy_has_not() -> None:
    import torch

    eye = torch.eye(3)
    kinds = (
        lambda x: x.to_sparse(),
        lambda x: x.to(torch.bfloat16),
        lambda x: x.to(torch.float8_e4m3fn),
        lambda x: torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged),
    )
    for kind in kinds:
        assert found(kind(eye), kind(eye))[0] == []
        assert found(kind(eye), kind(eye * 2))[0] != []


def test_a_difference_says_where() -> None:
    place = next(differences({"a": [X]}, {"a": [X + 1]}, Limits(), Counts())).at
    assert place.startswith("['a'][0][")
