"""Files of arrays: names, and what numpy reads back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnxsmith.graph.files import array_files


def test_an_npz_takes_the_names_of_numpys_own_parameters(tmp_path: Path) -> None:
    arrays = {"file": np.arange(3), "allow_pickle": np.ones((2, 0), np.float16), "x/y:0": np.array(["a", "bc"])}
    with (tmp_path / "values.npz").open("wb") as file:
        array_files.write_npz(file, arrays)
    with np.load(tmp_path / "values.npz", allow_pickle=False) as read:
        assert {name: (read[name].dtype, read[name].tolist()) for name in read.files} == {
            name: (array.dtype, array.tolist()) for name, array in arrays.items()
        }


def test_an_npz_refuses_objects(tmp_path: Path) -> None:
    with (tmp_path / "values.npz").open("wb") as file, pytest.raises(ValueError, match="pickle"):
        array_files.write_npz(file, {"x": np.array([None], object)})


def test_keys_are_given_once() -> None:
    taken = {"a"}
    assert [array_files.free_key(wish, taken) for wish in ("a", "a", "b.npy", "c\0")] == ["a#2", "a#3", "b.npy#", "c?"]
