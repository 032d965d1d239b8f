"""The step `postprocess`: answers as numpy computes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]> '
SCORES = HEAD + "net (float[n,6] x) => (float[n,6] scores, float[n,6] other) { scores = Neg(x) other = Abs(x) }"
BOXES = (
    HEAD
    + """net (float[n,b,4] x, float[n,3,b] s) => (float[n,b,4] boxes, float[n,3,b] scores)
    { boxes = Neg(x) scores = Neg(s) }"""
)


def edited(text: str, folder: Path, **fields: Any) -> Path:
    onnxsmith.save(from_text(text), folder / "m.onnx")
    with onnxsmith.edit(folder / "m.onnx", folder / "e.onnx") as m:
        m.postprocess(**fields)
    assert m.result is not None
    assert m.result.report.verdict.exit_code == 0
    notes = next(part for part in m.result.report.parts if isinstance(part, Edits)).notes
    assert any("compared with numpy on " in note for note in notes)
    with onnxsmith.edit(folder / "e.onnx", folder / "back.onnx") as m:
        m.remove_processing()
    assert (folder / "back.onnx").read_bytes() == (folder / "m.onnx").read_bytes()
    return folder / "e.onnx"


def names(file: Path) -> list[str | None]:
    return [value.name for value in onnxsmith.load(file).graph.outputs]


X = np.array([[0, -3, -1, -3, 2, -0.5], [1, 1, 1, 1, 1, 1]], np.float32)
CHANCES = np.exp(-X) / np.exp(-X).sum(-1, keepdims=True)


@pytest.mark.parametrize("keep", [False, True])
def test_the_best_class(keep: bool, tmp_path: Path) -> None:
    file = edited(SCORES, tmp_path, output="scores", method="argmax", keep=keep)
    assert names(file) == (["scores", "other", "scores_argmax"] if keep else ["scores_argmax", "other"])
    assert onnxsmith.run(file, {"x": X}).outputs["scores_argmax"].tolist() == [1, 0]


def test_probabilities(tmp_path: Path) -> None:
    file = edited(SCORES, tmp_path, output="scores", method="softmax", names=["chances"])
    assert np.allclose(onnxsmith.run(file, {"x": X}).outputs["chances"], CHANCES, rtol=1e-6)


@pytest.mark.parametrize("softmax", [True, False])
def test_the_best_few(softmax: bool, tmp_path: Path) -> None:
    file = edited(SCORES, tmp_path, output="scores", top=3, softmax=softmax, labels=list("abcdef"))
    outputs = onnxsmith.run(file, {"x": X}).outputs
    assert outputs["scores_indices"].tolist() == [[1, 3, 2], [0, 1, 2]]
    expected = np.take_along_axis(CHANCES if softmax else -X, outputs["scores_indices"], -1)
    assert np.allclose(outputs["scores_values"], expected, rtol=1e-6)
    assert json.loads(onnxsmith.load(file).metadata_props["labels"]) == list("abcdef")


@pytest.mark.parametrize("dtype", ["float16", "double", "bfloat16"])
def test_other_floats(dtype: str, tmp_path: Path) -> None:
    text = HEAD + f"net ({dtype}[n,6] x) => ({dtype}[n,6] y) {{ y = Identity(x) }}"
    assert names(edited(text, tmp_path)) == ["y_values", "y_indices"]


def test_fewer_classes_than_the_top(tmp_path: Path) -> None:
    text = HEAD + "net (float[n,c,2] x) => (float[n,c,2] y) { y = Neg(x) }"
    file = edited(text, tmp_path, axis=1)
    assert onnxsmith.run(file, {"x": np.zeros((1, 3, 2), np.float32)}).outputs["y_indices"].shape == (1, 3, 2)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("classes_axis", [1, 2])
def test_detections(centred: bool, classes_axis: int, tmp_path: Path) -> None:
    text = BOXES if classes_axis == 1 else BOXES.replace("[n,3,b]", "[n,b,3]")
    fields = {"output": "boxes", "scores": "scores", "method": "nms", "least_score": 0.3}
    file = edited(text, tmp_path, centred=centred, classes_axis=classes_axis, **fields)
    assert names(file) == ["selected_boxes", "selected_scores", "selected_classes", "selected_pictures"]
    corners = np.array([[[0, 0, 4, 4], [0, 0, 4, 3], [10, 10, 14, 14]]], np.float32)
    middles = np.array([[[2, 2, 4, 4], [2, 1.5, 4, 3], [12, 12, 4, 4]]], np.float32)
    scores = np.array([[[0.5, 0.9, 0.4], [0.2, 0.1, 0.2], [0.8, 0.1, 0.7]]], np.float32)
    boxes = middles if centred else corners
    given = scores if classes_axis == 1 else scores.transpose(0, 2, 1)
    outputs = onnxsmith.run(file, {"x": -boxes, "s": -given}).outputs
    assert outputs["selected_boxes"].tolist() == boxes[0][[1, 2, 0, 2]].tolist()
    assert np.allclose(outputs["selected_scores"], [0.9, 0.4, 0.8, 0.7])
    assert outputs["selected_classes"].tolist() == [0, 0, 2, 2]
    assert outputs["selected_pictures"].tolist() == [0, 0, 0, 0]


def test_a_picture_in_and_a_class_out(tmp_path: Path) -> None:
    text = (
        HEAD
        + """net (float[n,3,8,8] x) => (float[n,3] y)
        <float[3,3,1,1] k = {1,2,3,4,5,6,7,8,9}> { a = Conv(x, k) b = GlobalMaxPool(a) y = Flatten(b) }"""
    )
    onnxsmith.save(from_text(text), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.preprocess(resize="bicubic")
        m.postprocess(method="argmax")
    picture = np.full((2, 20, 30, 3), 128, np.uint8)
    assert onnxsmith.run(tmp_path / "e.onnx", {"x": picture}).outputs["y_argmax"].tolist() == [2, 2]
    with onnxsmith.edit(tmp_path / "e.onnx", tmp_path / "half.onnx") as m:
        m.remove_processing("y_argmax")
    assert names(tmp_path / "half.onnx") == ["y"]
    with onnxsmith.edit(tmp_path / "half.onnx", tmp_path / "back.onnx") as m:
        m.remove_processing()
    assert (tmp_path / "back.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_steps_of_one_edit(tmp_path: Path) -> None:
    onnxsmith.save(from_text(SCORES), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.rename("scores", to="logits")
        m.postprocess("logits", "argmax")
        m.rename("logits_argmax", to="best")
        m.remove_processing("best")
        m.rename("logits", to="scores")
    assert (tmp_path / "e.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


WRONG_NODES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "the last of equals": ("ArgMax", {"select_last_index": 1}, {"method": "argmax"}),
    "another axis": ("Softmax", {"axis": 0}, {"method": "softmax"}),
    "the smallest": ("TopK", {"largest": 0}, {"top": 2}),
}


@pytest.mark.parametrize("name", WRONG_NODES)
def test_wrong_nodes_are_refused(name: str, tmp_path: Path, refused: Refused) -> None:
    op, attributes, fields = WRONG_NODES[name]
    onnxsmith.save(from_text(SCORES), tmp_path / "m.onnx")
    with refused("edit/processing-differs"), onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.postprocess("scores", **fields)
        m.set({"op": op}, attributes)
    assert not (tmp_path / "e.onnx").exists()


def test_a_wrong_overlap_is_refused(tmp_path: Path, refused: Refused) -> None:
    onnxsmith.save(from_text(BOXES), tmp_path / "m.onnx")
    with refused("edit/processing-differs"), onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.postprocess("boxes", "nms", scores="scores")
        m.constant(m.nodes(op="NonMaxSuppression")[0].inputs[3], [0.6])
    assert not (tmp_path / "e.onnx").exists()


NMS = {"method": "nms", "output": "boxes", "scores": "scores"}
WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no such output": (SCORES, {"output": "logits"}, "edit/no-match"),
    "two outputs": (SCORES, {}, "edit/not-scores"),
    "a method": (SCORES, {"output": "scores", "method": "best"}, "edit/step-argument"),
    "an axis": (SCORES, {"output": "scores", "axis": 2}, "edit/not-scores"),
    "top": (SCORES, {"output": "scores", "top": 0}, "edit/step-argument"),
    "overlap": (BOXES, {**NMS, "overlap": 1.5}, "edit/step-argument"),
    "an axis of classes": (BOXES, {**NMS, "classes_axis": 0}, "edit/step-argument"),
    "no scores": (BOXES, {"method": "nms", "output": "boxes"}, "edit/step-argument"),
    "scores without nms": (BOXES, {"output": "boxes", "scores": "scores"}, "edit/step-argument"),
    "boxes as scores": (BOXES, {**NMS, "scores": "boxes"}, "edit/not-scores"),
    "scores as boxes": (SCORES, {**NMS, "output": "scores", "scores": "other"}, "edit/not-scores"),
    "whole numbers": (HEAD + "g (int64[n] x) => (int64[n] y) { y = Neg(x) }", {}, "edit/not-scores"),
    "a softmax": (HEAD + "g (float[n,3] x) => (float[n,3] y) { y = Softmax(x) }", {}, "edit/not-scores"),
    "opset 12": (HEAD.replace("20", "12") + "g (float[n,3] x) => (float[n,3] y) { y = Neg(x) }", {}, "edit/old-opset"),
    "one name too few": (SCORES, {"output": "scores", "names": ["best"]}, "edit/step-argument"),
    "a name that clashes": (SCORES, {"output": "scores", "method": "argmax", "names": ["other"]}, "edit/name-taken"),
    "five labels": (SCORES, {"output": "scores", "labels": list("abcde")}, "edit/not-scores"),
    "labels that are no text": (SCORES, {"output": "scores", "labels": ["a", 2]}, "edit/step-argument"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_processed_is_refused(name: str, tmp_path: Path, refused: Refused) -> None:
    text, fields, problem = WRONG[name]
    onnxsmith.save(from_text(text), tmp_path / "m.onnx")
    with refused(problem), onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.postprocess(**fields)
    assert not (tmp_path / "e.onnx").exists()


def test_labels_of_the_model_stay(tmp_path: Path, refused: Refused) -> None:
    model = from_text(SCORES)
    model.metadata_props["labels"] = "mine"
    onnxsmith.save(model, tmp_path / "m.onnx")
    with refused("edit/step-argument"), onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.postprocess("scores", labels=list("abcdef"))


def test_an_answer_is_not_processed_again(tmp_path: Path, refused: Refused) -> None:
    file = edited(SCORES, tmp_path, output="scores")
    with refused("edit/not-scores"), onnxsmith.edit(file) as m:
        m.postprocess("scores_values")
