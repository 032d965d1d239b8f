"""Tells files from devices and pipes among the outputs of a command, and writes to the few that take an output.

Writing an output replaces the file at its path. At the path of a device or a named pipe, that would put a file in its
place, or wait for a reader for ever. So an output is a file, with three exceptions, which get the finished bytes in one
go: standard output, a pipe that a shell opened for this process (`>(gzip)`), and the null device.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.system import standard_output
from onnxsmith.base.words import pasted

STANDARD_OUTPUT = "/dev/stdout"
_OPEN = re.compile(r"/(?:dev|proc/self)/fd/(\d+)|/dev/(?:stdin|stdout|stderr)")
"""Matches the paths of the files that this process has open."""


def is_device(path: Path) -> bool:
    """Whether the path is a device, a terminal or a pipe, or stands for a file that this process has open."""
    file = str(path)  # os.path also answers for names that are too long
    return bool(_OPEN.fullmatch(file)) or (
        os.path.exists(file) and not os.path.isfile(file) and not os.path.isdir(file)  # noqa: PTH110, PTH112, PTH113
    )


def is_standard_output(path: str | Path) -> bool:
    """Whether the path stands for the standard output of this process."""
    return str(path) in (STANDARD_OUTPUT, "/dev/fd/1", "/proc/self/fd/1")


def is_stream(path: Path) -> bool:
    """Whether the path is a device or a pipe that takes an output."""
    found = _OPEN.fullmatch(str(path))
    if found is None:
        return is_device(path) and _is_null(path)
    return is_standard_output(path) or (found[1] is not None and int(found[1]) > 2 and path.exists())


def refuse(path: str | Path, *, streams: bool = True) -> None:
    """Raises if an output would be written to a device or a pipe that takes none, or to `.` or `/`. `streams` says
    whether the output may be a stream; not an output that is a folder, or that the command reads again.

    Raises:
        OnnxsmithError: `save/not-a-file`; `run/name-too-long` for a path that no file can have.
    """
    target = Path(path)
    _refuse_too_long(target)
    if streams and not target.name:  # `.` or `/`, of which no name of a file beside it can be made
        refuse_folder(str(path), "")
    if not is_device(target) or (streams and is_stream(target)):
        return
    raise problem(
        "save/not-a-file",
        "the output path is that of a device or a pipe, not of a file",
        where=str(path),
        why="this output is a folder, or the command reads it again"
        if is_stream(target)
        else "a file would replace the device or pipe, or the command would wait until a program reads from it",
        fix=f"give the path of a file, such as {pasted(f'{target.stem}_2{target.suffix}')}",
    )


def refuse_folder(path: str, ending: str) -> None:
    """Raises if an output that is a file would be written to the path of a folder. `ending` is a usual extension of the
    file.

    Raises:
        OnnxsmithError: `save/not-a-file`.
    """
    target = Path(path)
    if not target.name or target.is_dir():
        raise problem(
            "save/not-a-file",
            "the output path is that of a folder",
            where=path,
            why="this output is a file",
            fix=f"give the path of a file in it, such as {pasted(target / f'new{ending}')}",
        )


def _refuse_too_long(path: Path) -> None:
    try:
        path.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise OnnxsmithError(too_long(str(path))) from error


def too_long(path: str) -> Problem:
    """Returns the problem of a path that is too long for the file system."""
    return Problem(
        "run/name-too-long",
        "the name of a file is too long",
        where=path,
        why="on most file systems a name has at most 255 bytes, and a path 4,096",
        fix="give a shorter path",
    )


def write(made: Path, stream: Path) -> None:
    """Writes the bytes of a finished file to a stream. Raises OSError, for example if the reader has ended."""
    found = _OPEN.fullmatch(str(stream))
    if found is None:
        descriptor = os.open(stream, os.O_WRONLY)
    else:  # opening its path again would empty a file to which the shell redirects
        descriptor = os.dup(standard_output.descriptor() if is_standard_output(stream) else int(found[1]))
    with os.fdopen(descriptor, "wb") as opened, made.open("rb") as source:
        shutil.copyfileobj(source, opened, 2**20)


def _is_null(path: Path) -> bool:
    return path.samefile(os.devnull)
