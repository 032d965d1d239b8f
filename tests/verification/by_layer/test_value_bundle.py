"""What is written as a bundle is read back equal, and what is none is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from onnxsmith.verification.by_layer import value_bundle
from onnxsmith.verification.by_layer.value_bundle import About, Writer, read
from tests.conftest import Refused

ABOUT = About("m.onnx", "ab" * 32, "reference", "reference", 3, {"onnx": "1.23"})
SUFFIXES = [".npz", ".safetensors"]
DTYPES = [
    np.float32, np.float64, np.float16, np.int8, np.int64, np.uint16, np.uint64, np.bool_, np.complex64, np.complex128,
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz, ml_dtypes.int4,
    ml_dtypes.float4_e2m1fn,
]  # fmt: skip
VALUES: dict[str, Any] = {
    **{f"/layers/{np.dtype(dtype).name}": np.array([[1, 0, 2]]).astype(dtype) for dtype in DTYPES},
    "scalar": np.array(1.5, np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "strings": np.array([["a", "Straße\0"]], object),
    "turned": np.arange(6).reshape(2, 3).T,
    "list": [np.ones(1, np.float32), np.ones((2, 2), ml_dtypes.bfloat16)],
    "list[0]": np.array([7]),
    "no list": [],
    "absent": None,
    "file": np.array([1]),
    "a": np.array([1]),
    "a.npy": np.array([2]),
    "__metadata__": np.array([3]),
    "onnxsmith.json": np.array([4]),
}


def same(found: Any, wanted: Any) -> None:
    if wanted is None or isinstance(wanted, list):
        assert type(found) is type(wanted)
        for one, other in zip(found or [], wanted or [], strict=True):
            same(one, other)
        return
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tolist() == wanted.tolist()


def written(path: Path, values: dict[str, Any]) -> Path:
    with Writer(path) as writer:
        for name, value in values.items():
            writer.add(name, value)
        assert not path.exists()
        names = list(values)
        writer.finish(ABOUT, names[::2], names[::-3])
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_values_come_back(suffix: str, tmp_path: Path) -> None:
    found = read(written(tmp_path / f"v{suffix}", VALUES))
    assert found.about == ABOUT
    assert list(found.entries) == list(VALUES)
    for name, value in VALUES.items():
        same(found.value(name), value)
    names = list(VALUES)
    assert found.named("input") == tuple(names[::2])
    assert found.named("output") == tuple(names[::-3])
    assert [file.name for file in tmp_path.iterdir()] == [f"v{suffix}"]


def test_other_programs_read_them(tmp_path: Path) -> None:
    values = {"x": np.ones(2, np.float32), "l": [np.zeros(1), np.ones(1)]}
    arrays = load_file(written(tmp_path / "v.safetensors", values))
    assert {name: array.tolist() for name, array in arrays.items()} == {"x": [1, 1], "l[0]": [0], "l[1]": [1]}
    with np.load(written(tmp_path / "v.npz", values)) as held:
        assert {"x", "l[0]", "l[1]"} < set(held.files)
        assert held["x"].tolist() == [1, 1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_not_finished_leaves_nothing(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"v{suffix}"
    path.write_text("before")
    with Writer(path) as writer:
        writer.add("x", np.ones(2))
    assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_cut_off_is_refused(suffix: str, tmp_path: Path, refused: Refused) -> None:
    path = written(tmp_path / f"v{suffix}", {"x": np.ones(100)})
    data = path.read_bytes()
    for length in (0, 4, 8, 50, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with refused("bundle/unreadable"):
            read(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_no_bundle_is_refused(suffix: str, tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / f"v{suffix}"
    with refused("bundle/unreadable"):
        read(path)
    for data in (b"text", b"\xff" * 100, b"{}" * 20):
        path.write_bytes(data)
        with refused("bundle/unreadable"):
            read(path)
    np.savez(tmp_path / "v.npz", x=np.ones(2))
    with refused("bundle/unreadable"):
        read(tmp_path / "v.npz")


def test_nothing_is_unpickled(tmp_path: Path, refused: Refused) -> None:
    np.savez(tmp_path / "v.npz", **{"onnxsmith.json": np.array([{"a": 1}], object)})
    with refused("bundle/unreadable"):
        read(tmp_path / "v.npz")


@pytest.mark.parametrize(
    "head",
    [
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 9]}},
        {"x": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}},
        {"x": {"dtype": "NONE", "shape": [2], "data_offsets": [0, 8]}},
        {"x": {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]}},
        {"x": 1},
        [],
    ],
)
def test_heads_that_do_not_add_up_are_refused(head: Any, tmp_path: Path, refused: Refused) -> None:
    text = json.dumps({"__metadata__": {"onnxsmith": "{}"}} | head if isinstance(head, dict) else head).encode()
    path = tmp_path / "v.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with refused("bundle/unreadable"):
        read(path)


def test_entries_that_are_not_there_are_refused(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "v.npz"
    with Writer(path) as writer:
        writer.add("x", np.ones(2))
        writer._entries["y"] = value_bundle.Entry("y", "tensor", ("float",), ("y",))
        writer.finish(ABOUT, [], [])
    with refused("bundle/unreadable"):
        read(path)


def test_a_name_that_it_has_not(tmp_path: Path, refused: Refused) -> None:
    found = read(written(tmp_path / "v.npz", {"hidden": np.ones(2)}))
    with refused("bundle/unknown-name") as refusal:
        found.value("hid")
    assert "hidden" in refusal.problem.fix


def test_targets_that_cannot_be(tmp_path: Path, refused: Refused) -> None:
    with refused("bundle/suffix"):
        Writer(tmp_path / "v.pt")
    with refused("save/no-folder"):
        Writer(tmp_path / "nowhere" / "v.npz")


def test_no_name_is_a_path_in_the_archive(tmp_path: Path) -> None:
    values = {name: np.array([1.5]) for name in ("../../x", "/tmp/x", "..\\..\\w", "tmp/x", "a/b")}
    with zipfile.ZipFile(written(tmp_path / "v.npz", values)) as archive:
        held = set(archive.namelist())
    assert held == {"_../_../x.npy", "tmp/x.npy", "_.._.._w.npy", "tmp/x#2.npy", "a/b.npy", "onnxsmith.json.npy"}
    found = read(tmp_path / "v.npz")
    assert [same(found.value(name), value) for name, value in values.items()] == [None] * len(values)
    written(tmp_path / "v.safetensors", values)
    assert set(read(tmp_path / "v.safetensors").entries) == set(values)
