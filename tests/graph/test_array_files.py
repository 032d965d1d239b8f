"""Files of arrays: names, and what numpy reads back."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
import pytest

from onnxsmith.graph.files import array_files
from onnxsmith.verification.inputs.input_files import read_npz


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


PATHS = {
    "../../x": "_../_../x", "/tmp/x": "tmp/x", "//host/x": "host/x", "..\\..\\w": "_.._.._w", "C:/x": "C_/x",
    "/C:x": "C_x", "a/../b": "a/_../b", ".hidden": "_.hidden", "a/.b": "a/_.b", "..": "_..", "/": "_",
    "\\\\host\\x": "__host_x", "/encoder/Add_output_0": "encoder/Add_output_0", "input:0": "input:0", "a//b": "a//b",
    "": "_", "a\n\x1b[2J\u202eb": "a__[2J_b", "größe": "größe",
}  # fmt: skip


@pytest.mark.parametrize(("name", "key"), PATHS.items())
def test_no_entry_of_an_archive_is_a_path_out_of_a_folder(name: str, key: str) -> None:
    assert array_files.member(name) == key
    assert array_files.member(key) == key
    for kind in (PurePosixPath, PureWindowsPath):
        path = kind("/folder") / key
        assert path.is_relative_to("/folder")
        assert ".." not in path.parts


def test_names_that_are_paths_come_back_from_an_npz(tmp_path: Path) -> None:
    names = [*PATHS, "x", "tmp/x", "//tmp/x", array_files.INDEX]
    arrays = {name: np.array([number]) for number, name in enumerate(dict.fromkeys(names))}
    with (tmp_path / "values.npz").open("wb") as file:
        array_files.write_npz(file, arrays)
    with zipfile.ZipFile(tmp_path / "values.npz") as archive:
        held = [one.removesuffix(".npy") for one in archive.namelist()]
    assert len(set(held)) == len(arrays) + 1
    assert all(one == array_files.member(one) for one in held)
    assert {"x", "tmp/x"} <= set(held)
    assert read_npz(tmp_path / "values.npz") == arrays
