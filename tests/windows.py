"""Parts of Windows that a test on Linux can have: files that somebody holds, and that nobody may move or remove then."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

_MOVES = ("rename", "replace")
_REMOVALS = ("unlink", "remove")


def holders(path: str) -> list[str]:
    """The processes that have the file open or mapped, or a file below it if it is a folder; each with the file."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            files = {line.split(maxsplit=5)[5] for line in (process / "maps").read_text().splitlines() if "/" in line}
            for one in (process / "fd").iterdir():
                with suppress(OSError):
                    files.add(os.readlink(one))
            found += [f"{process.name} holds {file}" for file in files if file == path or file.startswith(f"{path}/")]
    return found


@contextmanager
def held_files_stay(below: Path) -> Iterator[list[str]]:
    """Refuses to rename, replace or remove a file or folder under `below` that a process holds, as Windows does.
    Yields what was refused."""
    refused: list[str] = []
    root = os.path.realpath(below)

    def refusing(function: Callable[..., Any], moves: bool) -> Callable[..., Any]:
        def call(*paths: Any, **how: Any) -> Any:
            for number, path in enumerate(paths[: 2 if moves else 1]):
                name = how.get(("src_dir_fd", "dst_dir_fd")[number] if moves else "dir_fd")
                folder = os.readlink(f"/proc/self/fd/{name}") if name is not None else ""
                real = os.path.realpath(os.path.join(folder, os.fspath(path)))  # noqa: PTH118
                if real.startswith(f"{root}/") and (held := holders(real)):
                    refused.append(f"{function.__name__} {real}: {held}")
                    raise PermissionError(13, "the process cannot access the file (WinError 32)", os.fspath(path))
            return function(*paths, **how)

        return call

    with mock.patch.multiple(
        os,
        **{name: refusing(getattr(os, name), True) for name in _MOVES},
        **{name: refusing(getattr(os, name), False) for name in _REMOVALS},
    ):
        yield refused
