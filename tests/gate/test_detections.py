"""Detections and scores by name: everything that is said of a box counts, in each form of the answer."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from onnxsmith.base.report.verdict import Verdict
from onnxsmith.gate.answer_comparison import differences
from onnxsmith.gate.answers.base import Counts, Difference, Limits
from onnxsmith.gate.same import same

BOXES = np.array([[0.5, 0, 100, 100], [50, 60, 90, 80], [10, 10, 30, 40]], np.float32)
TURNED = np.array([2, 0, 1])
MASKS = np.arange(3 * 4 * 4).reshape(3, 4, 4) % 5 == 0
WHOLE: dict[str, Any] = {
    "boxes": BOXES,
    "scores": np.array([0.9, 0.8, 0.7], np.float32),
    "labels": np.array([1, 2, 2]),
    "masks": MASKS,
    "keypoints": np.arange(12, dtype=np.float32).reshape(3, 2, 2),
    "texts": ["a", "b", "c"],
    "data": {"numbers": np.array([7, 8, 9]), "camera": "left"},
    "image_id": 3,
    "image_size": [480, 640],
}
OF_BOXES = ("boxes", "scores", "labels", "masks", "keypoints", "texts")
CORNERS = {"xmin": ("xmin", "ymin", "xmax", "ymax"), "x1": ("x1", "y1", "x2", "y2")}
FORMS = {
    "xmin": lambda box: dict(zip(CORNERS["xmin"], box.tolist(), strict=True)),
    "x1": lambda box: dict(zip(CORNERS["x1"], box.tolist(), strict=True)),
    "list": lambda box: box.tolist(),
    "tuple": lambda box: tuple(box.tolist()),
    "array": lambda box: box,
}
Scored = namedtuple("Scored", "label score")


class Boxes:
    """Detections as an object, whose boxes are computed from `data`."""

    def __init__(self, data: Any, ids: Any = None) -> None:
        self.data, self.id, self.orig_shape = data, ids, (480, 640)

    xyxy = property(lambda self: self.data[:, :4])
    conf = property(lambda self: self.data[:, 4])
    cls = property(lambda self: self.data[:, 5])


def found(ours: Any, theirs: Any) -> list[Difference]:
    return list(differences(ours, theirs, Limits(), Counts()))


def turned(answer: dict[str, Any], rows: Any = TURNED) -> dict[str, Any]:
    """The same detections in another order."""
    parts = {
        key: [value[n] for n in rows] if key == "texts" else value[rows]
        for key, value in answer.items()
        if key in OF_BOXES
    }
    data = {**answer["data"], "numbers": answer["data"]["numbers"][rows]}
    return {**answer, **parts, "data": data}


def as_list(form: str, rows: Any = (0, 1, 2), **more: Any) -> list[dict[str, Any]]:
    scores = ("score", 0.9), ("score", 0.8), ("score", 0.7)
    return [
        {**dict([scores[n]]), "label": f"n{n}", "box": FORMS[form](BOXES[n]), "area": n * 2.5, **more} for n in rows
    ]


def test_every_key_counts() -> None:
    for key in WHOLE:
        less = {name: value for name, value in WHOLE.items() if name != key}
        for ours, theirs, said in ((WHOLE, less, "first"), (less, WHOLE, "second")):
            first = found(ours, theirs)[0]
            assert (first.at, first.kind) == (f"[{key!r}]", "keys")
            assert f"in the {said} answer only" in first.what


def test_what_is_said_of_boxes_is_compared_for_their_pairs() -> None:
    assert found(WHOLE, turned(WHOLE)) == []
    for key in ("masks", "keypoints", "texts", "data"):
        kept = {**turned(WHOLE), key: WHOLE[key]}
        (first, *_) = found(WHOLE, kept)
        assert first.at.startswith(f"[{key!r}]")
        assert "paired by their overlap" in first.how


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("masks", ~MASKS),
        ("masks", MASKS[:2]),
        ("keypoints", WHOLE["keypoints"] * np.float32(1.5)),
        ("texts", ["a", "b", "d"]),
        ("data", {"numbers": np.array([7, 8, 9])}),
        ("data", {"numbers": np.array([7, 8, 9]), "camera": "right"}),
        ("image_id", 4),
        ("image_size", [640, 480]),
        ("scores", WHOLE["scores"][:2]),
        ("labels", [1, 2, None]),
        ("labels", np.array([1, 2, 3])),
    ],
)
def test_a_part_that_is_off_is_named(key: str, other: Any) -> None:
    (first, *_) = found(WHOLE, {**WHOLE, key: other})
    assert first.at.startswith(
        "['boxes']" if key == "labels" and other is not None and None not in other else f"[{key!r}]"
    )


def test_two_numbers_of_the_picture_are_not_of_two_boxes() -> None:
    two = {**turned(WHOLE, np.array([0, 1])), "image_size": [480, 640]}
    assert found(two, turned(two, np.array([1, 0]))) == []


def test_parts_of_the_pairs_are_compared_if_a_box_is_lost() -> None:
    less = turned(WHOLE, np.array([2, 1]))
    less["keypoints"] = less["keypoints"] + np.float32(5)
    places = [one.at for one in found(WHOLE, less)]
    assert "['boxes'][0]" in places
    assert any(place.startswith("['keypoints'][2]") for place in places)
    assert not any(place.startswith("['masks']") for place in places)


@pytest.mark.parametrize("form", FORMS)
def test_a_list_with_a_box_each(form: str) -> None:
    assert found(as_list(form), as_list(form, TURNED)) == []
    assert found(as_list(form), as_list(form, TURNED, area=9.0))[0].at == "[0]['area']"
    assert found(as_list(form), as_list(form, track=1))[0].kind == "keys"
    less = [{key: one[key] for key in one if key != "score"} for one in as_list(form)]
    assert {one.at for one in found(as_list(form), less)} == {f"[{n}]['score']" for n in range(3)}
    assert found(as_list(form), as_list(form)[:2])[0].kind == "count"
    shifted = as_list(form)
    shifted[1]["box"] = FORMS[form](BOXES[1] + 5)
    assert found(as_list(form), shifted)[0].kind == "box"


def test_names_of_corners_and_forms_of_answers_are_told_apart() -> None:
    assert found(as_list("xmin"), as_list("x1"))[0].kind == "keys"
    assert found(as_list("xmin"), as_list("list"))[0].kind == "keys"
    assert found(as_list("xmin"), WHOLE)[0].kind == "type"


def test_an_object_with_boxes() -> None:
    rows = np.concatenate([BOXES, [[0.9, 1], [0.8, 2], [0.7, 2]]], 1).astype(np.float32)
    moved = rows + np.float32([0.05, 0.05, 0.05, 0.05, 0, 0])
    ids = np.array([4, 5, 6])
    assert found(Boxes(rows, ids), Boxes(moved[TURNED], ids[TURNED])) == []
    assert found(Boxes(rows, ids), Boxes(rows, ids[::-1]))[0].at == ".id[0]"
    assert found(Boxes(rows, ids), Boxes(rows))[0].at == ".id"


def test_further_boxes_are_compared_by_overlap() -> None:
    sizes = np.concatenate([BOXES[:, :2], BOXES[:, 2:] - BOXES[:, :2]], 1)
    both = {"xyxy": BOXES, "xywh": sizes}
    near = {"xyxy": BOXES[TURNED], "xywh": sizes[TURNED] + np.float32(0.02)}
    assert found(both, near) == []
    assert found(both, {"xyxy": BOXES, "xywh": sizes * 2})[0].at == "['xywh'][0]"


def test_no_number_is_the_same_as_no_number_only() -> None:
    holed = BOXES.copy()
    holed[1, 1] = np.nan
    assert found({"boxes": holed}, {"boxes": holed[TURNED]}) == []
    assert found({"boxes": holed}, {"boxes": holed + np.float32(1e-6)}) == []
    assert found({"boxes": holed}, {"boxes": BOXES})[0].kind == "box"
    assert found({"boxes": BOXES}, {"boxes": holed})[0].kind == "box"
    assert found({"boxes": BOXES, "labels": [np.nan] * 3}, {"boxes": BOXES, "labels": [np.nan] * 3}) == []
    assert found({"boxes": BOXES, "labels": [np.nan] * 3}, {"boxes": BOXES, "labels": [1.0] * 3})[0].kind == "box"
    inputs = [np.array([0.25]), np.array([0.5])]
    report = same(lambda x: {"boxes": holed * x[0]}, lambda x: {"boxes": holed * x[0]}, inputs=inputs)
    assert report.verdict is Verdict.DONE
    report = same(lambda x: {"boxes": BOXES * x[0]}, lambda x: {"boxes": holed * x[0]}, inputs=inputs)
    assert [one.id for one in report.problems] == ["gate/answers-differ"]


def test_boxes_without_an_area_are_compared_as_arrays() -> None:
    flat = np.array([[10.5, 10, 10.5, 20], [7, 7, 7, 7]])
    assert found({"boxes": flat}, {"boxes": flat[::-1] * (1 + 1e-6)}) == []
    assert found({"boxes": flat}, {"boxes": flat * 1.01}) != []


def test_equal_boxes_are_paired_by_their_scores() -> None:
    twice = {"boxes": BOXES[[0, 0]], "scores": [0.9, 0.4]}
    assert found(twice, {"boxes": BOXES[[0, 0]], "scores": [0.4, 0.9]}) == []
    assert found(twice, {"boxes": BOXES[[0, 0]], "scores": [0.9, 0.9]})[0].kind == "score"


def test_whole_shares_of_a_picture_may_not_be_off_by_one() -> None:
    assert found({"boxes": np.array([[0, 0, 1, 1]])}, {"boxes": np.array([[1, 0, 1, 1]])}) != []


def test_a_whole_step_is_a_change_for_the_exact_comparison() -> None:
    whole = np.array([[10, 10, 50, 60]])
    report = same(lambda x: {"boxes": whole + x}, lambda x: {"boxes": whole + x}, inputs=[0, 1])
    assert report.verdict is Verdict.DONE


RANKINGS = {
    "a mapping": lambda x: {"dog": 0.9 - x, "cat": 0.1 + x},
    "labels and scores": lambda x: [{"label": "dog", "score": 0.9 - x}, {"label": "cat", "score": 0.1 + x}],
    "pairs": lambda x: [("dog", 0.9 - x), ("cat", 0.1 + x)],
    "named tuples": lambda x: [Scored("dog", 0.9 - x), Scored("cat", 0.1 + x)],
    "the best": lambda x: [{"label": "dog", "score": 0.9 - x}],
    "corners": lambda x: {"x1": 10 + x, "y1": 2.5, "x2": 30.5, "y2": 40.0},
    "nested": lambda x: {"label": "dog", "probs": {"dog": 0.9 - x, "cat": 0.1 + x}},
    "numbers of numpy": lambda x: {"dog": np.float32(0.9 - x), "cat": np.array(0.1 + x)},
}


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("tolerance", [None, 0.0, 1e-3])
def test_scores_by_name_are_compared(name: str, tolerance: float | None) -> None:
    make = RANKINGS[name]
    for inputs in ([0.125, 0.25], [0.125], 0.125):
        assert same(make, lambda x: make(x), inputs=inputs, tolerance=tolerance).verdict is Verdict.DONE
        report = same(make, lambda x: make(x + 0.05), inputs=inputs, tolerance=tolerance)
        assert report.problems[0].id == "gate/answers-differ"


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ([("dog", 0.9), ("cat", 0.1)], [("dog", 0.9), ("cow", 0.1)], "names"),
        ([("dog", 0.9)], [("cat", 0.9)], "names"),
        ([("a", 0.2), ("b", 0.2)], [("c", 0.2), ("d", 0.2)], "names"),
        ([("dog", 0.6), ("cat", 0.3)], [("cat", 0.3), ("dog", 0.6)], "order"),
        ({"a": 1e-5, "b": 2e-5}, {"a": 9e-5, "b": 2e-5}, "score"),
        ({"width": 640.5, "score": 0.9}, {"width": 640.5, "score": 0.5}, "score"),
    ],
)
def test_names_and_order_of_scores_count(ours: Any, theirs: Any, kind: str) -> None:
    assert [one.kind for one in found(ours, theirs)][:1] == [kind]
    assert found(ours, ours) == []


def test_a_failure_says_how_parts_were_paired() -> None:
    rows = [(1.0, 2.0, 3.0, "a"), (4.0, 5.0, 6.0, "b")]
    for ours, theirs, how in (
        (rows, rows[::-1], "the answer is compared item by item, in order"),
        ({"boxes": BOXES}, {"boxes": BOXES + 5}, "boxes are paired by their overlap, in any order"),
        ({"a": 0.6, "b": 0.4}, {"a": 0.4, "b": 0.6}, "scores are compared by name"),
    ):
        (problem,) = same(lambda x, one=ours: one, lambda x, one=theirs: one, inputs=[1, 2]).problems
        assert problem.why.endswith(how)
