"""The kinds of data: what is read, in which order, with which labels, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import signature
from onnxsmith.precision.calibration_data import EVERY, digest, divided, read
from onnxsmith.precision.data.base import Reading, Sample
from tests.conftest import Refused

IMAGE = signature(
    from_text('<ir_version: 8, opset_import: ["": 17]> g (float[1,3,4,4] x) => (float[1,3,4,4] y) { y = Relu(x) }')
)
PAIR = signature(
    from_text('<ir_version: 8, opset_import: ["": 17]> g (float[n,2] a, int64[n] b) => (float[n,2] y) { y = Relu(a) }')
)
SOURCE = """
import numpy as np
def samples():
    for i in range(3):
        yield {"a": np.full((1, 2), i), "b": np.array([i])}, i
def broken():
    yield {"a": np.zeros((1, 2)), "b": np.array([0])}, 0
    raise RuntimeError("the disk is gone")
def image(path):
    return np.zeros((3, 4, 4), np.float32)
"""


def picture(path: Path, colour: tuple[int, int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), colour).save(path)


def test_folders_of_images_are_classes(tmp_path: Path) -> None:
    picture(tmp_path / "dog" / "1.png", (255, 0, 0))
    picture(tmp_path / "cat" / "2.png", (0, 255, 0))
    found = list(read(str(tmp_path), Reading(IMAGE)))
    assert [(one.name, one.label) for one in found] == [("cat/2.png", 0), ("dog/1.png", 1)]
    assert found[1].feeds["x"][0, :, 0, 0].tolist() == [1.0, 0.0, 0.0]


def test_folders_that_are_numbers_are_labels(tmp_path: Path) -> None:
    for name in ("0", "2", "10"):
        picture(tmp_path / name / "a.png", (0, 0, 0))
    assert sorted(one.label for one in read(str(tmp_path), Reading(IMAGE))) == [0, 2, 10]


def test_a_record_may_hold_its_label() -> None:
    items = [{"a": np.zeros((1, 2)), "b": np.array([1]), "label": 4}]
    found = next(iter(read(items, Reading(PAIR))))
    assert found.label == 4
    assert set(found.feeds) == {"a", "b"}


def test_images_of_one_folder_have_labels_of_a_table_or_none(tmp_path: Path, refused: Refused) -> None:
    picture(tmp_path / "1.png", (0, 0, 0))
    picture(tmp_path / "2.png", (0, 0, 0))
    assert [one.label for one in read(str(tmp_path), Reading(IMAGE))] == [None, None]
    (tmp_path / "labels.csv").write_text("1.png,7\n2.png,seven\n", encoding="utf-8")
    assert [one.label for one in read(str(tmp_path), Reading(IMAGE))] == [7, "seven"]
    (tmp_path / "labels.csv").write_text("1.png,7\n", encoding="utf-8")
    with refused("quantize/labels"):
        list(read(str(tmp_path), Reading(IMAGE)))


def test_preprocessing_gets_the_path_of_an_image(tmp_path: Path) -> None:
    picture(tmp_path / "1.png", (0, 0, 0))
    seen: list[Any] = []

    def prepare(item: Any) -> Any:
        seen.append(item)
        return np.ones((3, 4, 4), np.float64)

    found = next(iter(read(str(tmp_path), Reading(IMAGE, prepare))))
    assert seen == [tmp_path / "1.png"]
    assert (found.feeds["x"].shape, found.feeds["x"].dtype) == ((1, 3, 4, 4), np.float32)


def test_a_preprocessing_that_fails_is_named(tmp_path: Path, refused: Refused) -> None:
    picture(tmp_path / "1.png", (0, 0, 0))
    with refused("quantize/preprocessing") as refusal:
        list(read(str(tmp_path), Reading(IMAGE, lambda _: 1 / 0)))
    assert "1.png" in str(refusal.problem)


def test_an_archive_has_samples_along_the_first_axis(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", a=np.arange(6.0).reshape(3, 2), b=np.arange(3), label=np.array([5, 6, 7]))
    found = list(read(str(tmp_path / "d.npz"), Reading(PAIR)))
    assert [one.label for one in found] == [5, 6, 7]
    assert found[1].feeds["a"].tolist() == [[2.0, 3.0]]
    assert found[1].feeds["a"].dtype == np.float32
    assert found[2].feeds["b"].tolist() == [2]


def test_labels_that_do_not_match_are_refused(tmp_path: Path, refused: Refused) -> None:
    np.savez(tmp_path / "d.npz", a=np.zeros((3, 2)), b=np.arange(3), label=np.array([5, 6]))
    with refused("quantize/labels"):
        list(read(str(tmp_path / "d.npz"), Reading(PAIR)))


def test_a_folder_of_archives_has_one_sample_in_each(tmp_path: Path) -> None:
    for number in (2, 1):
        np.savez(tmp_path / f"{number}.npz", a=np.full((1, 2), number), b=np.array([number]), label=np.array(number))
    assert [int(one.label) for one in read(str(tmp_path), Reading(PAIR))] == [1, 2]


def test_lines(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1.0, 2.0]]))
    lines = [{"a": "a.npy", "b": [4], "label": "x"}, {"a": [[3, 4]], "b": [5], "label": None}]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = list(read(str(tmp_path / "d.jsonl"), Reading(PAIR)))
    assert [one.label for one in found] == ["x", None]
    assert [one.feeds["a"].tolist() for one in found] == [[[1.0, 2.0]], [[3.0, 4.0]]]
    assert found[1].feeds["b"].dtype == np.int64


@pytest.mark.parametrize("line", ["{", "[1]", '{"c": 1}', '{"a": [[1, 2]]}', '{"a": [[[1, 2]]], "b": [1], "d": 1}'])
def test_lines_that_are_no_samples(tmp_path: Path, line: str, refused: Refused) -> None:
    (tmp_path / "d.jsonl").write_text(line, encoding="utf-8")
    with refused("quantize/data"):
        list(read(str(tmp_path / "d.jsonl"), Reading(PAIR)))


def test_a_function_is_called_for_each_pass(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SOURCE, encoding="utf-8")
    samples = read(f"{tmp_path / 'own.py'}:samples", Reading(PAIR))
    assert [one.label for one in samples] == [one.label for one in samples] == [0, 1, 2]


def test_a_function_that_fails_on_the_way(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "own2.py").write_text(SOURCE, encoding="utf-8")
    with refused("quantize/data") as refusal:
        list(read(f"{tmp_path / 'own2.py'}:broken", Reading(PAIR)))
    assert "the disk is gone" in str(refusal.problem)


def test_an_iterator_can_be_read_twice() -> None:
    def items() -> Iterator[Any]:
        yield {"a": np.zeros((1, 2)), "b": np.array([1])}

    samples = read(items(), Reading(PAIR))
    assert len(list(samples)) == len(list(samples)) == 1


@pytest.mark.parametrize("given", ["nowhere", "missing.txt", 7])
def test_data_of_no_kind(given: Any, refused: Refused) -> None:
    with refused("quantize/data"):
        read(given, Reading(PAIR))


def test_division_leaves_nothing_out_and_has_nothing_twice() -> None:
    items = [{"a": np.full((1, 2), i), "b": np.array([i])} for i in range(10)]
    whole = read(items, Reading(PAIR))
    calibration, test = divided(whole)
    both = [digest(one) for one in (*calibration, *test)]
    assert sorted(both) == sorted(digest(one) for one in whole)
    assert len(list(calibration)) == len(range(0, 10, EVERY))


def test_the_digest_sees_values_dtypes_and_shapes() -> None:
    arrays = [np.zeros(2), np.zeros(2, np.float32), np.zeros((1, 2)), np.ones(2)]
    reading = read([{"a": one, "b": np.array([0])} for one in arrays[2:3]], Reading(PAIR))
    assert len({digest(one) for one in (*reading, *reading)}) == 1
    assert len({digest(Sample({"a": one})) for one in arrays}) == len(arrays)


def test_a_label_of_an_image_that_is_not_there_is_refused(tmp_path: Path, refused: Refused) -> None:
    picture(tmp_path / "1.png", (0, 0, 0))
    (tmp_path / "labels.csv").write_text("file,label\n1.png,7\n", encoding="utf-8")
    assert [one.label for one in read(str(tmp_path), Reading(IMAGE))] == [7]
    (tmp_path / "labels.csv").write_text("1.png,7\ngone.png,3\n", encoding="utf-8")
    with refused("quantize/labels") as refusal:
        list(read(str(tmp_path), Reading(IMAGE)))
    assert "gone.png" in refusal.problem.what
    assert "1 line of 2" in refusal.problem.why


def test_why_data_cannot_be_read(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.csv").write_text("a,b", encoding="utf-8")
    (tmp_path / "a.py").write_text("x = 1", encoding="utf-8")
    said = {
        "empty": "no images",
        "a.csv": ".csv is not a supported kind of data",
        "a.py": "add a colon",
        "gone": "does not exist",
    }
    for name, why in said.items():
        with refused("quantize/data") as refusal:
            read(str(tmp_path / name), Reading(IMAGE))
        assert why in refusal.problem.why


def test_a_text_that_is_called_npz_is_named_so(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "a.npz").write_text("hello", encoding="utf-8")
    with refused("input/unreadable") as refusal:
        list(read(str(tmp_path / "a.npz"), Reading(IMAGE)))
    assert "neither" in refusal.problem.why


def test_the_line_of_an_image_that_is_gone_is_named(tmp_path: Path, refused: Refused) -> None:
    picture(tmp_path / "1.png", (0, 0, 0))
    (tmp_path / "a.jsonl").write_text('{"x": "1.png"}\n{"x": "gone.png"}\n', encoding="utf-8")
    with refused("input/unreadable") as refusal:
        list(read(str(tmp_path / "a.jsonl"), Reading(IMAGE)))
    assert "a.jsonl:2" in refusal.problem.where
    assert "no such file" in refusal.problem.fix


def test_the_name_of_labels_is_told(tmp_path: Path, refused: Refused) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros((3, 2), np.float32), b=np.zeros(3, np.int64), y=np.zeros(3))
    with refused("quantize/data") as refusal:
        list(read(str(tmp_path / "a.npz"), Reading(PAIR)))
    assert "`label`" in refusal.problem.fix
