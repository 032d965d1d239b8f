"""Files of users are read within bounds, and all that is wrong with them is an OSError or a ValueError."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from onnxsmith.base import devices, limits, user_files
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.structure import dim_ranges


def test_a_text_may_begin_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfa = 1")
    assert user_files.parse_toml(user_files.read_utf8(tmp_path / "a.toml")) == {"a": 1}


def test_a_large_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_files, "MOST", 8)
    (tmp_path / "a.txt").write_bytes(b"12345678")
    assert user_files.read_utf8(tmp_path / "a.txt") == "12345678"
    (tmp_path / "a.txt").write_bytes(b"123456789")
    with pytest.raises(OSError, match="more than 8 bytes"):
        user_files.read_utf8(tmp_path / "a.txt")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_and_a_device_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="a pipe or a device"):
            user_files.read_utf8(path)


@pytest.mark.parametrize("depth", [101, 20_000])
def test_what_nests_deep_is_refused(depth: int) -> None:
    text = "[" * depth + "]" * depth
    with pytest.raises(ValueError, match="nested over 100 deep"):
        user_files.parse_json(text)
    with pytest.raises(ValueError, match="nested over 100 deep"):
        user_files.parse_toml(f"a = {text}")


def test_what_does_not_nest_deep_is_read() -> None:
    assert user_files.parse_json("[" * 99 + "]" * 99)
    assert user_files.parse_json('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        RuntimeError("std::bad_alloc"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        ValueError("array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."),
        ValueError("Maximum allowed dimension exceeded"),
    ],
)
def test_a_lack_of_memory_is_a_problem(error: Exception) -> None:
    found = limits.problem_of(error)
    assert found is not None
    assert found.id == "run/no-memory"


def test_a_removed_current_folder_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError) as caught:
        Path.cwd()
    found = limits.problem_of(caught.value)
    assert found is not None
    assert found.id == "run/no-current-folder"
    monkeypatch.chdir(tmp_path)
    assert limits.problem_of(caught.value) is None


def test_a_very_large_integer_is_refused() -> None:
    assert user_files.parse_json(f"[{10**30}, {-(2**63)}]") == [10**30, -(2**63)]  # transformers writes 10^30
    for number in (2**64, -(2**64), 10**400):
        with pytest.raises(ValueError, match="64 are allowed"):
            user_files.parse_toml(f"a = [{{ b = {number} }}]")
    with pytest.raises(ValueError, match="1,023 are allowed"):
        user_files.parse_json(f'{{"a": [{10**400}]}}')


@pytest.mark.parametrize("shape", [(2**62, 3), (2**63 - 1,), (1,) * 65])
def test_an_array_that_no_memory_holds_is_a_problem(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"too big|imension") as raised:
        np.random.default_rng(0).standard_normal(shape)
    found = limits.problem_of(raised.value)
    assert found is not None
    assert found.id == "run/no-memory"


def test_a_size_over_int64_is_refused() -> None:
    assert dim_ranges.read(["n=9223372036854775807"]) == {"n": 2**63 - 1}
    with pytest.raises(OnnxsmithError, match="input/size-range"):
        dim_ranges.read(["n=9223372036854775808"])


@pytest.mark.parametrize("path", [".", "/"])
def test_an_output_without_a_name_is_refused(path: str) -> None:
    with pytest.raises(OnnxsmithError, match="save/not-a-file"):
        devices.refuse(path)
    devices.refuse(path, streams=False)


def test_no_folder_for_temporary_files_is_a_problem() -> None:
    error = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/var/tmp']")
    found = limits.problem_of(error)
    assert found is not None
    assert found.id == "run/no-temporary-folder"
    assert "'/tmp', '/var/tmp'" in found.why
