"""A store in a folder: of this machine, of a network, or of any file system that fsspec knows."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.fleet.row import Row, Summary
from onnxsmith.fleet.run_list import Run
from onnxsmith.fleet.sources import address as addresses
from onnxsmith.fleet.store_problems import damaged, refuse_format, refused
from onnxsmith.fleet.stores.base import FORMAT, Store

_HEAD = 4096
"""Bytes that hold the first line of most rows."""
_END = b"}\n"
"""The end of the file of a row."""


class FolderStore(Store):
    """`rows/ab/KEY.json` has a row: its summary in the first line, all of it in the second. `runs/NAME.json` has a run.
    A file is written whole or not at all, so no lock is needed."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        with self._refusing():
            self._files = _files_at(address)
            head = self._files.read("store.json")
        self._is_new = head is None
        if head is None:
            return
        try:
            version = user_files.parse_json(head)["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(f"{address.rstrip('/')}/store.json", str(error)) from error
        refuse_format(address, version, FORMAT)

    def _known(self, keys: Collection[str]) -> set[str]:
        if len(keys) < 8:  # a listing of the folder takes longer
            with self._refusing():
                return {key for key in keys if self._files.exists(_row_name(key))}
        return self.keys() & set(keys)

    def keys(self) -> set[str]:
        with self._refusing():
            return {Path(name).stem for name in self._files.listed("rows")}

    def put(self, row: Row) -> None:
        head = [row.key, row.outcome.value, row.headline.replace("\n", " "), row.problem, row.seconds]
        self._write(_row_name(row.key), f"{json.dumps(head)}\n{row.to_json()}\n")

    def row(self, key: str) -> Row | None:
        with self._refusing():
            content = self._files.read(_row_name(key))
        if content is None:
            return None
        try:
            row = Row.from_json(content.decode(errors="replace").partition("\n")[2])
            _refuse_other_key(row.key, key)
        except ValueError as error:
            self._note_damaged(key, error)
            return None
        return row

    def summaries(self, keys: Collection[str]) -> dict[str, Summary]:
        listed = ((key, self._summary(key)) for key in self._known(keys))
        return {key: summary for key, summary in listed if summary is not None}

    def _summary(self, key: str) -> Summary | None:
        with self._refusing():
            head, is_whole = self._files.first_line(_row_name(key))
        try:
            summary = Summary.read(user_files.parse_json(head))
            _refuse_other_key(summary.key, key)
            if not is_whole:
                raise ValueError("its end is missing")
            return summary
        except ValueError as error:
            self._note_damaged(key, error)
            return None

    def _note_damaged(self, key: str, error: Exception) -> None:
        self.damaged[f"{self.address.rstrip('/')}/{_row_name(key)}"] = str(error)

    def put_run(self, run: Run) -> None:
        self._write(_run_name(run.name), run.to_json())

    def _write(self, name: str, text: str) -> None:
        """Writes a file. The first one makes the folder a store."""
        with self._refusing():
            if self._is_new:
                self._files.write("store.json", json.dumps({"format": FORMAT}).encode())
                self._is_new = False
            self._files.write(name, text.encode())

    def run(self, name: str) -> Run | None:
        return self._run(_run_name(name))

    def _run(self, name: str) -> Run | None:
        with self._refusing():
            content = self._files.read(name)
        where = f"{self.address.rstrip('/')}/{name}"
        return None if content is None else Run.from_json(content.decode(errors="replace"), where)

    def _readable(self, name: str) -> Run | None:
        """Returns a run; None for one that is damaged."""
        try:
            return self._run(name)
        except OnnxsmithError as error:
            if error.problem.id != "fleet/store":
                raise
            self.damaged[error.problem.where] = error.problem.why
            return None

    def run_names(self) -> list[str]:
        with self._refusing():
            names = self._files.listed("runs")
        runs = [run for name in names if (run := self._readable(f"runs/{name}")) is not None]
        return [run.name for run in sorted(runs, key=lambda run: (run.at, run.name))]

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OnnxsmithError:
            raise
        except OSError as error:
            raise refused(self.address, error) from error
        except Exception as error:
            if "://" in self.address:  # a file system of fsspec raises errors of its own
                raise addresses.unreachable(self.address, error) from error
            raise


def _row_name(key: str) -> str:
    name = quote(key, safe="").replace(".", "%2E")  # a key that a user types may be anything
    return f"rows/{name[:2]}/{name}.json"


def _refuse_other_key(named: object, key: str) -> None:
    if named != key:
        raise ValueError(f"the file has the row of another key: {named}")


def _run_name(name: str) -> str:
    quoted = quote(name, safe="")
    return f"runs/{'%2E' * quoted.startswith('.') + quoted.removeprefix('.')}.json"  # a hidden file is being written


class _Files(ABC):
    """The files of a folder, by names with `/`."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Returns the bytes of a file, None if there is no such file."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Writes a file whole, or leaves the old one."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    @abstractmethod
    def listed(self, folder: str) -> list[str]:
        """Returns the names of the JSON files below a folder, without those that are being written."""

    @abstractmethod
    def first_line(self, name: str) -> tuple[str, bool]:
        """Returns the first line of a file, and whether the file ends as it was written. A remote file was written
        whole, so that its end is looked at only if it is near."""


def _files_at(address: str) -> _Files:
    """Returns the files of a folder. Those of a local folder are never half written, however it is addressed."""
    if "://" not in address:
        return _Local(Path(address))
    system, root = addresses.opened(address.rstrip("/"))
    return _Local(Path(root)) if "file" in system.protocol else _Remote(system, root)


class _Local(_Files):
    """A folder of this machine, or one that is mounted."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._root.mkdir(parents=True, exist_ok=True)

    def read(self, name: str) -> bytes | None:
        try:
            with user_files.opened(self._root / name) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            aside.write_bytes(content)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)

    def exists(self, name: str) -> bool:
        return (self._root / name).exists()

    def listed(self, folder: str) -> list[str]:
        names = []
        for _, _, files in os.walk(self._root / folder):
            names += [name for name in files if name.endswith(".json") and not name.startswith(".")]
        return names

    def first_line(self, name: str) -> tuple[str, bool]:
        with user_files.opened(self._root / name) as file:
            head = file.readline()
            file.seek(max(file.seek(0, os.SEEK_END) - len(_END), 0))
            return head.decode(errors="replace"), file.read() == _END


class _Remote(_Files):
    """A folder of a file system of fsspec. An object store shows an object when it is whole."""

    def __init__(self, system: Any, root: str) -> None:
        self._system, self._root = system, root

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(self._system.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        path = f"{self._root}/{name}"
        self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._system.pipe_file(path, content)

    def exists(self, name: str) -> bool:
        self._system.invalidate_cache()
        return bool(self._system.exists(f"{self._root}/{name}"))

    def listed(self, folder: str) -> list[str]:
        self._system.invalidate_cache()
        try:
            return [
                name.rpartition("/")[2]
                for name in self._system.find(f"{self._root}/{folder}")
                if name.endswith(".json")
            ]
        except FileNotFoundError:
            return []

    def first_line(self, name: str) -> tuple[str, bool]:
        path = f"{self._root}/{name}"
        head = bytes(self._system.cat_file(path, start=0, end=_HEAD))
        is_all = len(head) < _HEAD
        if b"\n" not in head and not is_all:
            head, is_all = bytes(self._system.cat_file(path)), True
        return head.partition(b"\n")[0].decode(errors="replace"), not is_all or head.endswith(_END)
