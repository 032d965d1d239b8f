"""Parts of Windows that a test on Linux can have: nobody may move or remove a file that a process holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from onnxsmith.base.system import locks, moving

_MOVES = ("rename", "replace")
_REMOVALS = ("unlink", "remove")


def _program(process: Path) -> str:
    """What a process is, to find out who forgot to close a file."""
    words = (process / "cmdline").read_bytes().split(b"\0")
    return "this test" if process.name == str(os.getpid()) else b" ".join(words[:4]).decode(errors="replace")


def holders(path: str) -> list[str]:
    """The processes that have the file open or mapped, or a file below it if it is a folder; each with the file."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            maps = (process / "maps").read_text(encoding="utf-8").splitlines()
            files = {line.split(maxsplit=5)[5] for line in maps if "/" in line}
            for one in (process / "fd").iterdir():
                with suppress(OSError):
                    files.add(str(one.readlink()))
            held = [file for file in files if file == path or file.startswith(f"{path}/")]
            found += [f"{process.name} ({_program(process)}) holds {file}" for file in held]
    return found


@contextmanager
def held_files_stay(below: Path) -> Iterator[list[str]]:
    """Refuses to rename, replace or remove a file or folder under `below` that a process holds, as Windows does, and
    takes the package's ways of Windows. Yields what was refused. Temporary files go into a folder of their own: by the
    rule of Windows, the folders of other processes would look like those of dead ones."""
    refused: list[str] = []
    root = os.path.realpath(below)

    def refusing(function: Callable[..., Any], *, moves: bool) -> Callable[..., Any]:
        def call(*paths: Any, **how: Any) -> Any:
            for number, path in enumerate(paths[: 2 if moves else 1]):
                name = how.get(("src_dir_fd", "dst_dir_fd")[number] if moves else "dir_fd")
                folder = str(Path(f"/proc/self/fd/{name}").readlink()) if name is not None else ""
                real = os.path.realpath(os.path.join(folder, os.fspath(path)))  # noqa: PTH118
                if real.startswith(f"{root}/") and (held := holders(real)):
                    refused.append(f"{function.__name__} {real}: {held}")
                    raise PermissionError(13, "the process cannot access the file (WinError 32)", os.fspath(path))
            return function(*paths, **how)

        return call

    with (
        tempfile.TemporaryDirectory() as temporary,
        mock.patch.object(tempfile, "tempdir", temporary),
        mock.patch.object(locks, "HERE", locks.OpenFiles()),
        mock.patch.object(moving, "HERE", moving.CopiedIfHeld()),
        mock.patch.multiple(
            os,
            **{name: refusing(getattr(os, name), moves=True) for name in _MOVES},
            **{name: refusing(getattr(os, name), moves=False) for name in _REMOVALS},
        ),
    ):
        yield refused
