"""Arrays are read within the memory that there is, and only if their heads say what the file holds."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxsmith.base.system import memory_limit
from onnxsmith.editor import patch
from onnxsmith.gate.baselines import data_file
from onnxsmith.graph.files import array_files
from onnxsmith.precision.pruning import torch_parameters
from onnxsmith.verification.by_layer import value_bundle
from onnxsmith.verification.inputs.input_files import read_npz
from tests.conftest import Refused


def npy(shape: str = "(3,)", descr: str = "'<f4'", values: bytes = bytes(12), version: int = 1) -> bytes:
    """Makes an `.npy` with any head."""
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    size = len(head).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + head + values


def archive(path: Path, *entries: tuple[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", how) as file:
        warnings.simplefilter("ignore", UserWarning)  # a name that is there twice
        for name, content in entries:
            file.writestr(name, content)


BAD = {
    "too few values": npy("(1000000000000,)"),
    "negative": npy("(-1,)"),
    "two negatives": npy("(-3, -1)"),
    "beyond 64 bits": npy("(0, 1180591620717411303424)", values=b""),
    "objects": npy(descr="'|O'"),
    "no bytes": npy("(1000000000000,)", "'<U0'", b""),
    "a head of brackets": npy("(" * 3000 + ")" * 3000),
    "no head": b"\x93NUMPY\x01\x00",
    "a head that is cut off": npy()[:30],
    "fields": npy(version=3),
    "a pickle": b"\x80\x04.",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_a_head_that_lies_is_refused(tmp_path: Path, refused: Refused, name: str, content: bytes) -> None:
    if name == "a.npz":
        archive(tmp_path / name, ("x.npy", content))
    else:
        (tmp_path / name).write_bytes(content)
    with refused("input/unreadable") as refusal:
        read_npz(tmp_path / name)
    assert "\n" not in refusal.problem.why


ARCHIVES: dict[str, tuple[list[tuple[str, bytes]], int]] = {
    "twice": ([("x.npy", npy()), ("x.npy", npy())], zipfile.ZIP_STORED),
    "a folder": ([("x.npy", npy()), ("folder/", b"")], zipfile.ZIP_STORED),
    "more values than declared": ([("x.npy", npy(values=bytes(16)))], zipfile.ZIP_STORED),
    "no array": ([("x.txt", b"a text")], zipfile.ZIP_STORED),
    "another compression": ([("x.npy", npy())], zipfile.ZIP_LZMA),
}


@pytest.mark.parametrize(("entries", "how"), ARCHIVES.values(), ids=ARCHIVES)
def test_an_archive_that_numpy_does_not_write_is_refused(
    tmp_path: Path, refused: Refused, entries: list[tuple[str, bytes]], how: int
) -> None:
    archive(tmp_path / "a.npz", *entries, how=how)
    with refused("input/unreadable"):
        read_npz(tmp_path / "a.npz")


def test_sizes_that_the_directory_of_an_archive_declares_are_no_proof(tmp_path: Path, refused: Refused) -> None:
    """The directory of the archive and the head both declare few values; the compressed values are more."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", npy("(3,)", values=bytes(10_000_000)))
    whole = len(npy(values=bytes(10_000_000)))
    content = buffer.getvalue().replace(whole.to_bytes(4, "little"), len(npy()).to_bytes(4, "little"))
    (tmp_path / "a.npz").write_bytes(content)
    with refused("input/unreadable"):
        read_npz(tmp_path / "a.npz")


def saliency(path: Path) -> object:
    return torch_parameters._arrays(path)


def of_patch(path: Path) -> object:
    return patch._from_file(path)


def in_bundle(path: Path) -> object:
    return value_bundle.read(path)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "input": ("a.npz", read_npz),
    "saliency": ("a.npz", saliency),
    "patch": ("a.npy", of_patch),
    "values": ("a.npz", in_bundle),
}


@pytest.mark.parametrize(("name", "read"), READERS.values(), ids=READERS)
def test_no_reader_reads_more_than_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, name: str, read: Callable[[Path], object]
) -> None:
    values: dict[str, Any] = {"onnxsmith.json": np.zeros(1_000_000, np.uint8)}
    np.savez_compressed(tmp_path / "a.npz", **values)
    np.save(tmp_path / "a.npy", values["onnxsmith.json"])
    monkeypatch.setattr(type(memory_limit.HERE), "room", lambda _: 999_999)
    with refused("input/too-large") as refusal:
        read(tmp_path / name)
    assert "1,000,000 bytes" in refusal.problem.what
    assert "999,999 more" in refusal.problem.what


def test_the_directory_of_an_archive_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lists all entries: read for each entry, it takes time that is quadratic in their number."""
    values: dict[str, Any] = {f"k{number}": np.full(2, number) for number in range(50)}
    np.savez(tmp_path / "a.npz", **values)
    opened: list[None] = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *args: Any, **options: Any) -> None:
            opened.append(None)
            super().__init__(*args, **options)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    read = read_npz(tmp_path / "a.npz")
    one = array_files.ArrayFile(tmp_path / "a.npz")
    for name, value in values.items():
        np.testing.assert_array_equal(read[name], value)
        np.testing.assert_array_equal(one.array(name), value)
    assert len(opened) == 2


def test_what_fits_is_read(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "file": np.arange(6, dtype=np.int16).reshape(2, 3).T,
        "none": np.empty((0, 3)),
        "scalar": np.float64(2),
        "text": np.array(["ß"]),
    }
    with (tmp_path / "a.npz").open("wb") as file:
        array_files.write_npz(file, values)
    read = read_npz(tmp_path / "a.npz")
    assert read.keys() == values.keys()
    for name, value in values.items():
        np.testing.assert_array_equal(read[name], value)


@pytest.mark.parametrize("room", [99, 100])
def test_the_data_of_a_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, room: int) -> None:
    import hashlib

    name = hashlib.sha256(bytes(100)).hexdigest()
    archive(tmp_path / "b.zip", (name, bytes(100)))
    with refused("gate/baseline-data"):
        data_file.read(tmp_path / "b.zip", {name})  # compressed
    archive(tmp_path / "b.zip", (name, bytes(100)), how=zipfile.ZIP_STORED)
    monkeypatch.setattr(type(memory_limit.HERE), "room", lambda _: room)
    if room == 100:
        assert data_file.read(tmp_path / "b.zip", {name}).held == {name: bytes(100)}
    else:
        with refused("input/too-large"):
            data_file.read(tmp_path / "b.zip", {name})
