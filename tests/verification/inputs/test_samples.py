"""Arrays with several samples are several inputs, and an input that lacks a value is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.verification.inputs.user_inputs import feeds, inputs, samples, values
from tests.conftest import Refused

AUDIO = Signature((Port("x", "float", (1, "n")), Port("rate", "int64", ()), Port("s", "float", (1, 2))), ())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def chunks(count: int, *shape: int) -> np.ndarray:
    return np.arange(count, dtype=np.float32).reshape(count, *[1] * len(shape)) * np.ones(shape, np.float32)


def test_one_axis_more_than_the_input() -> None:
    found = samples({"x": chunks(3, 1, 4), "rate": np.array(16000)}, AUDIO)
    assert [one["x"].shape for one in found] == [(1, 4)] * 3
    assert [sorted(one) for one in found] == [["rate", "x"], ["x"], ["x"]]


def test_more_rows_than_the_one_that_the_input_fixes() -> None:
    assert [one["x"][0, 0] for one in samples({"x": chunks(3, 4)}, AUDIO)] == [0, 1, 2]


def test_one_sample_and_wrong_shapes_stay_as_they_are() -> None:
    for shape in ((1, 4), (4,), (3, 2, 4)):
        assert len(samples({"x": np.ones(shape, np.float32)}, AUDIO)) == 1
    assert len(samples({"x": chunks(3, 1, 4), "s": chunks(2, 1, 2)}, AUDIO)) == 1


def test_a_file_behind_the_samples_is_for_all_of_them(folder: Path) -> None:
    np.savez("x.npz", x=chunks(3, 1, 4))
    np.save("rate.npy", np.array(8000))
    np.save("s.npy", np.zeros((1, 2), np.float32))
    found = feeds(["x.npz", "rate=rate.npy", "s=s.npy"], AUDIO)
    assert [feed.values["rate"] for feed in found] == [8000] * 3
    assert [feed.label for feed in found][1] == "given input 2 of 3 (x.npz, sample 2)"
    found = feeds(["x.npz", "rate=rate.npy", "s=s.npy"], AUDIO, state=["s"])
    assert ["s" in feed.values for feed in found] == [True, False, False]


def test_arrays_from_python() -> None:
    given = {"x": chunks(2, 1, 4), "rate": np.array(1), "s": np.zeros((1, 2), np.float32)}
    found = inputs(given, AUDIO)
    assert [sorted(feed.values) for feed in found] == [["rate", "s", "x"]] * 2
    assert [feed.label for feed in inputs({"x": chunks(1, 4)}, AUDIO)] == ["the given input"]


def test_where_one_input_is_wanted_nothing_is_taken_apart(folder: Path) -> None:
    np.savez("x.npz", x=chunks(3, 1, 4))
    assert values(["x.npz"], AUDIO)["x"].shape == (3, 1, 4)


def test_a_file_that_lacks_an_input_is_named(folder: Path, refused: Refused) -> None:
    two = Signature((Port("x", "float", ("n", 2)), Port("mask", "float", ("n",))), ())
    np.savez("a.npz", x=np.ones((1, 2), np.float32), mask=np.ones(1, np.float32))
    np.savez("b.npz", x=np.ones((3, 2), np.float32))
    with refused("input/incomplete") as refusal:
        feeds(["b.npz"], two)
    assert "has no value for the input 'mask'" in refusal.problem.what
    with refused("input/incomplete") as refusal:
        feeds(["a.npz", "b.npz"], two)
    assert refusal.problem.what.startswith("given input 2 of 2 (b.npz)")
    assert "'n' is 1 there and 3 here" in refusal.problem.why
    np.savez("c.npz", x=np.zeros((1, 2), np.float32))
    assert feeds(["a.npz", "c.npz"], two)[1].values["mask"].tolist() == [1]
