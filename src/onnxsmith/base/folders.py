"""Makes hidden and temporary folders that disappear with their process, or at the latest when the next process starts.

A killed process cannot remove its folders. Each folder therefore holds a locked file. The operating system releases the
lock when the process ends, for whatever reason and in whatever container. A folder whose lock is free has no owner and
may be removed. If the file system has no locks, nobody else removes it.

Several outputs that are moved one after the other may be stopped between two moves. So the folder says beforehand
(`note`) what is left to do, and whoever removes the folder does it first (`_finish`).
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NewType

from onnxsmith.base import devices, user_files
from onnxsmith.base.system import forks, locks, moving

OwnPath = NewType("OwnPath", Path)
"""A path that onnxsmith made, and not the user: below a folder of this module. Any code may open it; the paths of the
user are opened by this module and `user_files` alone (`tools/opened_paths.py`)."""

_MARK = "onnxsmith"
_LOCK = ".owner"
_UNFINISHED = ".unfinished"
_LONGEST = 60
"""Characters of the file name that go into the folder name: a name has at most 255 bytes, a character at most 4."""


_cleared: set[Path] = set()
"""Holds the folders of temporary files in which this process has removed what dead processes left."""
forks.in_child(_cleared.clear)  # a server that only forks would never remove what its workers left


@contextmanager
def temporary() -> Iterator[OwnPath]:
    """Makes a folder among the temporary files of the system for the block. The first call removes the folders that
    dead processes left there.

    Raises:
        OSError: the folder of temporary files is not writable.
    """
    parent = Path(tempfile.gettempdir())
    if parent not in _cleared:
        _cleared.add(parent)
        clear(parent)
    with _owned(f"{_MARK}-", parent) as folder:
        yield folder


@contextmanager
def beside(path: Path) -> Iterator[OwnPath]:
    """Makes a hidden folder beside `path` for the block, after removing the folders that dead processes left there.

    Raises:
        OnnxsmithError: `save/not-a-file` if `path` is a device or a pipe.
        OSError: the parent folder is not writable.
    """
    devices.refuse(path, streams=False)
    clear(path.parent)
    prefix = f".{path.name[:_LONGEST]}.{_MARK}-"
    with _owned(prefix, path.parent) as folder:
        yield folder


@contextmanager
def aside(path: Path) -> Iterator[OwnPath]:
    """Makes a folder for the block, for writing the file that `place` moves to `path`: beside the file, or of a
    link's target. A stream has nothing beside it, so its folder is temporary.

    Raises:
        OnnxsmithError: `save/not-a-file`.
        OSError: the parent folder is not writable.
    """
    devices.refuse(path)
    with temporary() if devices.is_stream(path) else beside(Path(os.path.realpath(path))) as folder:
        yield folder


def copy(path: Path, target: OwnPath) -> None:
    """Copies the bytes of a file that the user gave.

    Raises:
        OSError: the file cannot be read, or is a pipe or a device; the target cannot be written.
    """
    user_files.refuse_special(path)
    shutil.copyfile(path, target)


def place(made: Path, path: Path) -> None:
    """Moves a finished file to `path`. A stream gets its bytes. Raises OSError."""
    if devices.is_stream(path):
        devices.write(made, path)
    else:
        made.replace(os.path.realpath(path))


@contextmanager
def replacing(path: Path) -> Iterator[OwnPath]:
    """Yields a path to write to, in a hidden folder beside `path`. When the block succeeds, the written file replaces
    `path`; until then the old file is untouched.

    Raises:
        OnnxsmithError: `save/not-a-file`.
        OSError: the parent folder is not writable.
    """
    with aside(path) as folder:
        yield OwnPath(folder / path.name)
        place(folder / path.name, path)


def cache() -> OwnPath:
    """Returns the folder of this user for files that can be made again; it may not exist yet.

    Raises:
        RuntimeError: this user has no home folder.
    """
    parent = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return OwnPath((Path(parent) if parent else Path.home() / ".cache") / _MARK)


def move(place: Path, target: Path, beside: Path) -> None:
    """Moves the finished folder `place` to its target. An older folder there goes into the hidden folder `beside`, and
    comes back if the new one cannot be moved.

    Raises:
        OSError: the parent folder is not writable.
    """
    with moved(place, target, beside):
        pass


@contextmanager
def moved(place: Path, target: Path, beside: Path) -> Iterator[None]:
    """Moves a folder as `move` does, before the block. If the block fails, everything is as it was."""
    old = beside / "replaced"
    if target.is_dir():
        note(beside, target)
        target.rename(old)
    try:
        moving.HERE.move(place, target)
        try:
            yield
        except BaseException:
            target.rename(place)
            raise
    except BaseException:
        if old.is_dir():
            old.rename(target)
        raise
    (beside / _UNFINISHED).unlink(missing_ok=True)  # before a part of the old folder is removed


def note(folder: Path, target: Path, new: Sequence[Path] = (), stale: Sequence[Path] = ()) -> None:
    """Writes into a hidden folder what is left to do when the process is stopped from now on. If nothing is at
    `target`, the folder "replaced" comes back. While the new target is still in the hidden folder, the `new` data files
    beside the target are not needed; later, the `stale` ones are not. They are removed if no model names them.

    Raises:
        OSError: the folder is not writable.
    """
    files = [{file.name: _identity(file) for file in files} for files in (new, stale)]
    content = json.dumps({"target": target.name, "new": files[0], "stale": files[1]})  # ASCII, whatever the names are
    unnamed = folder / f"{_UNFINISHED}.new"
    unnamed.write_bytes(content.encode())
    unnamed.replace(folder / _UNFINISHED)


def _identity(file: Path) -> list[int]:
    """Returns what tells a file from a later one of its name."""
    found = file.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _finish(folder: Path) -> None:
    """Does what a stopped process has noted in its folder."""
    try:
        noted = json.loads((folder / _UNFINISHED).read_bytes())
        target = folder.parent / Path(noted["target"]).name
        is_moved = not os.path.lexists(folder / target.name)
        files = {target.with_name(Path(name).name): one for name, one in noted["stale" if is_moved else "new"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    if not os.path.lexists(target):
        with contextlib.suppress(OSError):
            (folder / "replaced").rename(target)
        if is_moved:  # its user has moved the model, perhaps to a name that is not looked at below
            return
    models = (target, *folder.parent.glob("*.onnx"))
    for file, identity in files.items():
        with contextlib.suppress(OSError):
            if not file.is_symlink() and _identity(file) == identity and not is_named(file, models):
                file.unlink()


def is_named(data: Path, models: Iterable[Path]) -> bool:
    """Whether one of the models holds the name of a data file."""
    name = os.fsencode(data.name)
    return any(holds(model, name) for model in models)


def holds(file: Path, text: bytes) -> bool:
    """Whether a file holds a text. An unreadable or empty file does not."""
    with contextlib.suppress(OSError, ValueError):
        if file.is_file():
            with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content.find(text) >= 0
    return False


def clear(parent: Path) -> None:
    """Removes the folders in `parent` that `temporary` and `beside` made for processes that have ended."""
    ours = re.compile(rf"(\..*\.)?{_MARK}-\w+", re.DOTALL)
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):  # noqa: PTH208 — keeps names that are not UTF-8 as they are
            if ours.fullmatch(name):
                _remove_if_left(parent / name)


@contextmanager
def _owned(prefix: str, parent: Path) -> Iterator[OwnPath]:
    folder, owner = OwnPath(Path(tempfile.mkdtemp(prefix=prefix, dir=parent))), os.getpid()
    lock: int | None = None
    try:
        while True:
            with contextlib.suppress(FileNotFoundError):  # another process found the folder before it had its lock
                lock = locks.HERE.hold(folder / _LOCK)
                break
            folder = OwnPath(Path(tempfile.mkdtemp(prefix=prefix, dir=parent)))
        yield folder
    finally:
        if os.getpid() == owner:  # a fork has the same block open, and must leave the folder to its parent
            _give_up(folder, lock)


def _give_up(folder: Path, lock: int | None) -> None:
    _finish(folder)
    if lock is not None:
        locks.HERE.release(lock)  # before removing: that needs a free file descriptor, and perhaps there is no other
    _remove(folder)
    if lock is not None:
        _leave_to_others(folder)


def _remove(folder: Path) -> None:
    """Removes the folder as far as possible. The lock file goes last: a process that is stopped here leaves a folder
    that the next one removes."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder), key=lambda name: name == _LOCK):  # noqa: PTH208 — keeps names that are not UTF-8 as they are
            with contextlib.suppress(OSError):
                entry = folder / name
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink()
        folder.rmdir()


def _leave_to_others(folder: Path) -> None:
    """Marks what could not be removed as a dead process's folder: Windows keeps a file that this process has mapped."""
    if folder.exists():
        with contextlib.suppress(OSError):
            (folder / _LOCK).touch()


def _remove_if_left(folder: Path) -> None:
    if folder.is_symlink():
        return
    with contextlib.suppress(OSError), locks.HERE.taken_over(folder / _LOCK):
        _finish(folder)
        _remove(folder)
        _leave_to_others(folder)
    _remove_if_new(folder)


def _remove_if_new(folder: Path) -> None:
    """Removes a folder whose process ended before it had made the lock: it is empty, private and named by chance. If
    the process lives, it makes another folder."""
    random_name = re.search(r"-[a-z0-9_]{8}$", folder.name)
    with contextlib.suppress(OSError):
        ours = folder.name.startswith(".") or folder.parent == Path(tempfile.gettempdir())
        if ours and random_name and stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU:
            locks.HERE.remove_unheld(folder / _LOCK)
            folder.rmdir()
