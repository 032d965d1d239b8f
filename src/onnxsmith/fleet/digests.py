"""Digests of files. A file whose size and time did not change is not read again."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from onnxsmith.base import folders
from onnxsmith.base.problem import problem
from onnxsmith.graph.files import digest
from onnxsmith.graph.files.save import named_data

_TABLE = "CREATE TABLE IF NOT EXISTS digests (path TEXT PRIMARY KEY, state TEXT, digest TEXT)"
_YOUNG = 2.0
"""Seconds. The digest of a file that changed a moment ago is not kept: a second change may leave its time as it is."""


def cache_folder() -> folders.OwnPath:
    """Returns the folder of this user for files that can be made again; it exists."""
    folder = folders.cache()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Digests:
    """Computes digests, and remembers them by path, size and time of change."""

    def __init__(self, cache: sqlite3.Connection | None) -> None:
        self._cache = cache
        self._known: dict[str, tuple[str, str]] = {}
        if cache is not None:
            self._known = {path: (state, text) for path, state, text in cache.execute("SELECT * FROM digests")}
        self._new: dict[str, tuple[str, str]] = {}

    def file(self, path: Path) -> str:
        """Returns a digest of the file; for an ONNX file, of its data files too.

        Raises:
            OnnxsmithError: `fleet/model-unreadable`.
        """
        try:
            own = self._digest(path)
            if path.suffix != ".onnx":
                return own
            data = [(name, self._digest(path.parent / name)) for name in self._data_names(path, own)]
        except OSError as error:
            raise problem(
                "fleet/model-unreadable",
                "a file of the plan cannot be read",
                where=str(path),
                why=error.strerror or str(error),
                fix="bring the file back, or leave it out of the plan",
            ) from error
        return hashlib.sha256(json.dumps([own, data]).encode()).hexdigest() if data else own

    def files(self, paths: Sequence[str], folder: Path) -> str:
        """Returns a digest of several files and their paths in `folder`."""
        return hashlib.sha256(json.dumps([(path, self.file(folder / path)) for path in paths]).encode()).hexdigest()

    def _digest(self, path: Path) -> str:
        return self._remembered(path, "", lambda: digest.sha256(path))

    def _data_names(self, path: Path, own: str) -> list[str]:
        names = self._remembered(path, f"data of {own}", lambda: json.dumps(named_data(path)))
        return [name for name in json.loads(names) if (path.parent / name).is_file()]

    def _remembered(self, path: Path, kind: str, compute: Callable[[], str]) -> str:
        about = path.stat()
        key, state = f"{kind}{path.absolute()}", _state(about)
        kept = self._known.get(key)
        if kept is not None and kept[0] == state:
            return kept[1]
        text = compute()
        self._known[key] = (state, text)
        if time.time() - max(about.st_mtime, about.st_ctime) > _YOUNG:
            self._new[key] = (state, text)
        return text

    def save(self) -> None:
        """Keeps the new digests for the next process."""
        if self._cache is not None and self._new:
            with suppress(sqlite3.Error, UnicodeEncodeError), self._cache:  # a path may be no text
                rows = [(path, *kept) for path, kept in self._new.items()]
                self._cache.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", rows)
            self._new.clear()


def _state(about: os.stat_result) -> str:
    """Returns what changes with the bytes of a file. POSIX notes the time of each change; a program may set the other
    time back."""
    return f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns} {about.st_ino} {about.st_dev}"


@contextmanager
def remembered() -> Iterator[Digests]:
    """Yields digests that are kept in the cache folder of this user; without such a folder, or if the cache is damaged,
    they are computed anew."""
    with ExitStack() as opened:
        try:
            connection = opened.enter_context(
                closing(sqlite3.connect(cache_folder() / "file-digests.sqlite", timeout=5))
            )
            connection.execute(_TABLE)
            digests = Digests(connection)
        except (OSError, sqlite3.Error, ValueError):
            digests = Digests(None)
        yield digests
        digests.save()
