"""Answers of a library that the next process reads from the user's cache folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.runtimes import onnxruntime
from onnxsmith.runtimes._kept_answers import kept


class Asked:
    """Counts the questions that reach the library."""

    def __init__(self, answer: Any) -> None:
        self.times = 0
        self._answer = answer

    def __call__(self) -> Any:
        self.times += 1
        return self._answer


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "native.so").write_bytes(b"1")
    return folder


def file_of(library: Path) -> Path:
    (file,) = (library.parent / "cache" / "onnxsmith").iterdir()
    return file


@pytest.mark.parametrize("answer", [[{"name": "Abs", "last": None}], None, []])
def test_an_answer_is_kept(library: Path, answer: Any) -> None:
    ask = Asked(answer)
    assert [kept(library, "what", ask) for _ in range(3)] == [answer] * 3
    assert ask.times == 1
    assert kept(library, "other", Asked("other")) == "other"


def touched(library: Path) -> None:
    os.utime(library / "native.so", ns=(1, 1))


def longer(library: Path) -> None:
    status = (library / "native.so").stat()
    (library / "native.so").write_bytes(b"12")
    os.utime(library / "native.so", ns=(status.st_atime_ns, status.st_mtime_ns))


def grown(library: Path) -> None:
    (library / "more.so").write_bytes(b"")


def cut(library: Path) -> None:
    file = file_of(library)
    file.write_bytes(file.read_bytes()[:-9])


def of_another_form(library: Path) -> None:
    file_of(library).write_text("[]")


def a_folder(library: Path) -> None:
    file_of(library).unlink()
    file_of_name = library.parent / "cache" / "onnxsmith"
    file_of_name.rmdir()
    file_of_name.write_text("a file where the folder should be")


@pytest.mark.parametrize("change", [touched, longer, grown, cut, of_another_form, a_folder])
def test_the_library_is_asked_again(library: Path, change: Callable[[Path], None]) -> None:
    assert kept(library, "what", Asked("old")) == "old"
    change(library)
    assert kept(library, "what", Asked("new")) == "new"


def test_a_missing_library_is_asked(library: Path) -> None:
    assert kept(library / "none", "what", Asked("answer")) == "answer"


def test_the_kernels_are_those_that_onnxruntime_lists(library: Path) -> None:
    request = {"do": "kernels", "domain": "", "op": "Gelu"}
    listed = onnxruntime._ask(request)["kernels"]
    for _ in range(2):
        onnxruntime._kernels.cache_clear()
        assert onnxruntime._kernels("", "Gelu") == listed
    assert file_of(library).stat().st_size > 0
