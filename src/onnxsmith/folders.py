"""Hidden and temporary folders of a process, which go with it: at the latest, the next process removes them.

A process that is killed outright cannot remove what it wrote. Each folder therefore holds a lock that the operating
system lets go of with the process, whatever ends it, on whichever machine and in whichever container it ran; a folder
whose lock can be had belongs to nobody. Where the file system knows no locks, none is left, and nothing is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onnxsmith.system import locks

_MARK = "onnxsmith"
_LOCK = ".owner"
_LONGEST = 60
"""Characters of a file's name that its folder's name repeats: names end at 255 bytes."""


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A hidden folder beside `path` that is gone when the block ends. Those that a dead process left there are removed
    first.

    Raises:
        OSError: the folder around it cannot be written to.
    """
    clear(path.parent)
    prefix = f".{path.name[:_LONGEST]}.{_MARK}-"
    with _owned(prefix, path.parent) as folder:
        yield folder


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, in a folder beside `path`, whose file takes the place of `path` when the block ends well:
    what was there before is whole until then. What is no file, a terminal or a pipe, is written to directly.

    Raises:
        OSError: the folder around it cannot be written to.
    """
    real = Path(os.path.realpath(path))
    if real.exists() and not real.is_file():
        yield real
        return
    with beside(real) as folder:
        yield folder / path.name
        (folder / path.name).replace(real)


def clear(parent: Path) -> None:
    """Removes the folders of `beside` in `parent` whose process is dead."""
    ours = re.compile(rf"\..*\.{_MARK}-\w+", re.DOTALL)
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):  # noqa: PTH208 — names that are no text come back as they are
            if ours.fullmatch(name):
                _remove_if_left(parent / name)


@contextmanager
def _owned(prefix: str, parent: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    lock: int | None = None
    try:
        lock = locks.HERE.hold(folder / _LOCK)
        yield folder
    finally:
        if lock is not None:
            os.close(lock)  # first, because removing takes an open file, of which there may be no other
        _remove(folder)


def _remove(folder: Path) -> None:
    """Removes the folder, as far as that can be done; where few files may be open, with one at a time."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 — names that are no text come back as they are
            (folder / name).unlink()
        folder.rmdir()


def _remove_if_left(folder: Path) -> None:
    if folder.is_symlink():
        return
    with contextlib.suppress(OSError), locks.HERE.taken_over(folder / _LOCK):
        _remove(folder)
