"""Parameters of processing: TOML files, options, and models that do not fit a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.bundles.processing_parameters import parameters
from tests.deployment.bundles.models import classifier, identity, linear, upscaler


def refused(*words: Any, **how: Any) -> tuple[str, str]:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(*words, form="python", **how)
    return caught.value.problem.id, caught.value.problem.fix


def wrong(given: dict[str, Any], file: Path | None = None) -> tuple[str, str]:
    with pytest.raises(OnnxsmithError) as caught:
        parameters(given, file)
    assert caught.value.problem.id == "bundle/settings"
    return caught.value.problem.what, caught.value.problem.fix


def test_a_file_and_options_which_win(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("a\nb\n", encoding="utf-8")
    file = tmp_path / "s.toml"
    file.write_text('size = [4, 6]\nmean = 0.5\nfit = "crop"\nlabels = "names.txt"\n', encoding="utf-8")
    found = parameters({"mean": "0.1,0.2,0.3", "std": None}, file)
    assert (found.size, found.mean, found.fit, found.labels) == ((4, 6), (0.1, 0.2, 0.3), "crop", ("a", "b"))
    assert parameters({"size": "8"}).size == (8, 8)


LABELLED = "--task image-classification; or --task ocr; or --task text-classification"


@pytest.mark.parametrize(
    "given",
    [{"size": "0x4"}, {"size": "1x2x3"}, {"mean": "a"}, {"mean": "nan"}, {"std": "0"}, {"colour": "cmyk"},
     {"fit": "zoom"}, {"labels": "no.txt"}, {"top": 0}, {"blank": -1}],
)  # fmt: skip
def test_values_that_do_not_fit(given: dict[str, Any]) -> None:
    assert next(iter(given)) in wrong(given)[0]


def test_a_name_that_is_none(tmp_path: Path) -> None:
    assert wrong({"sizes": 3}) == ("there is no parameter 'sizes'", "write size in place of sizes")
    (tmp_path / "s.toml").write_text("size = [", encoding="utf-8")
    assert wrong({}, tmp_path / "s.toml")[0] == "the settings file cannot be read"


@pytest.mark.parametrize("task", ["image-classification", "super-resolution", "ocr"])
def test_a_model_that_takes_no_picture(tmp_path: Path, task: str) -> None:
    assert refused(linear(tmp_path), tmp_path / "o", task=task)[0] == "bundle/task-mismatch"
    two = identity(tmp_path, *[(f"x{n}", f"y{n}", TensorProto.FLOAT, [1, 3, 8, 8]) for n in range(2)])
    assert refused(two, tmp_path / "o", task=task)[0] == "bundle/task-mismatch"


def test_super_resolution_of_three_channels(tmp_path: Path) -> None:
    found = refused(upscaler(tmp_path, channels=3), tmp_path / "o", task="super-resolution")
    assert found[0] == "bundle/task-mismatch"
    found = refused(upscaler(tmp_path), tmp_path / "o", task="super-resolution", processing={"scale": 3})
    assert found[0] == "bundle/task-mismatch"


def test_parameters_that_the_model_contradicts(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    for processing in ({"size": (4, 4)}, {"mean": (0.1, 0.2)}, {"labels": ["a", "b"]}):
        found = refused(model, tmp_path / "o", task="image-classification", processing=processing)
        assert found[0] == "bundle/task-mismatch"
    free = classifier(tmp_path, size="side")  # type: ignore[arg-type]
    assert refused(free, tmp_path / "o", task="image-classification") == (
        "bundle/task-mismatch",
        ("give the size that the model was trained with: --size 224x224"),
    )


def test_a_softmax_in_the_model_is_not_repeated(tmp_path: Path) -> None:
    for softmax in (False, True):
        path = classifier(tmp_path, softmax=softmax)
        out = tmp_path / f"o{softmax}"
        assert onnxsmith.bundle(path, out, form="python", task="image-classification").ok
        text = (out / "processing.py").read_text(encoding="utf-8")
        assert ("the model ends in a Softmax" in text) is softmax


def test_forms_without_processing_name_those_that_have_it(tmp_path: Path) -> None:
    how: dict[str, Any] = {"task": "text-classification", "processing": {"tokenizer": tmp_path}}
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(classifier(tmp_path), tmp_path / "o", form="cpp", **how)
    assert caught.value.problem.id == "bundle/not-for-form"


@pytest.mark.parametrize(
    ("task", "given", "fix"),
    [
        ("tensors", {"labels": ["a"]}, LABELLED),
        ("super-resolution", {"labels": ["a"]}, LABELLED),
        ("image-classification", {"blank": 1}, "--task ocr"),
        ("ocr", {"top": 3}, "--task image-classification"),
        ("tensors", {"top": 3, "blank": 1}, "leave blank, top out"),
    ],
)
def test_parameters_that_the_task_does_not_use(tmp_path: Path, task: str, given: dict[str, Any], fix: str) -> None:
    found = refused(classifier(tmp_path), tmp_path / "o", task=task, processing=given)
    assert found == ("bundle/settings", fix)


@pytest.mark.parametrize("task", ["image-classification", "super-resolution"])
def test_a_range_without_a_batch_of_one(tmp_path: Path, task: str) -> None:
    model = classifier(tmp_path) if task == "image-classification" else upscaler(tmp_path)
    found = refused(model, tmp_path / "o", task=task, dim_ranges=("batch=2:4:8",))
    assert found == ("bundle/task-mismatch", "--dim batch=1:4:8")
