"""Finds the files that words of a command line name, with the files that belong to them, and hashes all their bytes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.base.problem import problem
from onnxsmith.graph.files import digest
from onnxsmith.graph.files.save import named_data


def in_words(words: Iterable[str], *, outputs: Collection[Path] = ()) -> list[Path]:
    """Returns the files that the words name, each once, in order. A word is a path, or has one: `x=photo.png`,
    `m.onnx@reference`, `file.py:factory`, `profile:table.toml`. A folder stands for all files in it but the `outputs`,
    a model for itself and its data files, a patch file for itself and its arrays."""
    found: list[Path] = []
    for path in (path for word in words for path in _paths(word)):
        found += without(whole(path), outputs) if path.is_dir() else whole(path)
    return list(dict.fromkeys(found))


def whole(path: Path) -> Iterator[Path]:
    """Yields the file and the files that it names: the data files of a model, the arrays of a patch file. Yields all
    files of a folder."""
    if path.is_dir():
        yield from (one for one in sorted(path.rglob("*")) if one.is_file())
    elif path.is_file():
        yield path
        names = _arrays(path) if path.suffix == ".toml" else named_data(path)
        yield from (one for name in names if (one := path.parent / name).is_file())


def _arrays(patch: Path) -> Iterator[str]:
    """Yields the names of files in a TOML file: the values of its keys `file`."""
    try:
        tables: list[Any] = [user_files.parse_toml(user_files.read_utf8(patch))]
    except ValueError:  # the command says what is wrong with the file
        return
    while tables:
        table = tables.pop(0)
        inner = table.values() if isinstance(table, dict) else table
        tables += [one for one in inner if isinstance(one, dict | list)]
        if isinstance(table, dict) and isinstance(table.get("file"), str):
            yield table["file"]


def _paths(word: str) -> Iterator[Path]:
    """Yields the first reading of the word that is a path of a file or folder."""
    readings = (
        word,
        word.partition("=")[2],
        word.rpartition("@")[0],
        word.rpartition(":")[0],
        word.partition(":")[2],
    )
    for text in readings:
        if text and exists(text):
            yield Path(text)
            return


def exists(text: str | Path) -> bool:
    """Whether there is a file or folder of this name."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a name; a null byte
        return False


def digests(files: Iterable[Path], root: Path | None = None) -> dict[str, str]:
    """Returns the SHA-256 of all bytes of each file, by its name. Names are relative to `root`, by default to the
    current folder.

    Raises:
        OnnxsmithError: `record/file-unreadable`.
    """
    return {file.as_posix(): _digest(file if root is None else root / file) for file in files}


def _digest(file: Path) -> str:
    try:
        return digest.sha256(file)
    except OSError as error:
        raise problem(
            "record/file-unreadable",
            "a file that the record names cannot be read",
            where=str(file),
            why=error.strerror or str(error),
            fix="make the file readable, and run the command again",
        ) from error


def without(files: Iterable[Path], others: Collection[Path]) -> list[Path]:
    """Returns the files that are none of the others, whatever path leads to them."""
    real = {os.path.realpath(one) for one in others}
    return [file for file in files if os.path.realpath(file) not in real]
