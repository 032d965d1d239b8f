"""Inputs that are given are read in order; a name that comes again begins the next input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.verification.inputs.user_inputs import feeds, several, values
from tests.conftest import Refused

TWO = Signature((Port("x", "float", ("n",)), Port("z", "float", ("n",))), ())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate("ab", 1):
        np.savez(tmp_path / f"{name}.npz", x=np.full(number, number, np.float32), z=np.ones(number, np.float32))
        np.save(tmp_path / f"{name}.npy", np.full(3, number, np.float32))
    return tmp_path


def test_two_archives_of_the_same_names_are_two_inputs(folder: Path) -> None:
    found = several([f"{folder}/a.npz", f"{folder}/b.npz"], TWO)
    assert [one["x"].tolist() for one in found] == [[1], [2, 2]]


def test_a_name_that_comes_again_begins_the_next_input(folder: Path) -> None:
    found = several([f"x={folder}/a.npy", f"z={folder}/a.npy", f"x={folder}/b.npy"], TWO)
    assert [(one["x"][0], one["z"][0]) for one in found] == [(1, 1), (2, 1)]


def test_what_stands_once_is_one_input(folder: Path) -> None:
    found = several([f"x={folder}/a.npy", f"z={folder}/b.npy"], TWO)
    assert [(one["x"][0], one["z"][0]) for one in found] == [(1, 2)]


def test_files_without_names_fill_one_input_after_the_other(folder: Path) -> None:
    found = several([f"{folder}/{name}.npy" for name in "abb"], TWO)
    assert [(one["x"][0], one["z"][0]) for one in found] == [(1, 2), (2, 2)]


def test_each_is_counted_and_labelled(folder: Path) -> None:
    found = feeds([f"{folder}/a.npz", f"{folder}/b.npz"], TWO)
    assert [(feed.label, feed.sizes) for feed in found] == [
        ("given input 1 of 2 (a.npz)", {"n": 1}),
        ("given input 2 of 2 (b.npz)", {"n": 2}),
    ]
    assert feeds([f"{folder}/a.npz"], TWO)[0].label == "the given input"


def test_where_one_is_wanted_a_second_is_refused(folder: Path, refused: Refused) -> None:
    with refused("input/twice") as refusal:
        values([f"{folder}/a.npz", f"{folder}/b.npz"], TWO)
    assert "'x'" in refusal.problem.what


def test_a_comparison_sees_a_difference_that_only_the_first_shows(folder: Path) -> None:
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[n] x, float[n] z) => (float[n] y) %s'
    save(from_text(text % "{ y = Add(x, z) }"), folder / "m.onnx")
    other = "<float two = {2}> { c = Mul(x, z)\n d = Add(c, z)\n e = Max(d, two)\n y = Min(e, d) }"
    save(from_text(text % other), folder / "o.onnx")
    sides = str(folder / "m.onnx"), str(folder / "o.onnx")
    result = onnxsmith.compare(*sides, inputs=[f"{folder}/a.npz", f"{folder}/b.npz"], generate=False)
    part = result.report.part(Verification)
    assert part.runs == ("given input 1 of 2 (a.npz)", "given input 2 of 2 (b.npz)")
    assert part.sizes == {"n": (1, 2)}
