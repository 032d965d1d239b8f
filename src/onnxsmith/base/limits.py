"""Turns refusals of the operating system into problems: memory, open files, disk space, permissions."""

from __future__ import annotations

import errno
import math
import re
import tempfile
from pathlib import Path

from onnxsmith.base import devices
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.words import pasted

_SHORTAGE = re.compile(
    r"std::bad_alloc|can't start new thread|failed to map segment from shared object"
    r"|array is too big|Maximum allowed (?:dimension|size) exceeded|maximum supported dimension for an ndarray"
)
"""Matches messages of libraries and of the loader that say that memory ran out, and those of numpy for an array that no
memory could hold."""

_NO_TEMPORARY = "No usable temporary directory"
"""Is how Python's `tempfile` begins its message."""


def refuse_seconds(seconds: float) -> None:
    """Refuses a time limit that is no number of seconds from 0 on.

    Raises:
        OnnxsmithError: `runtime/bad-limit`.
    """
    if not 0 <= seconds < math.inf:
        fix = "give a number of seconds, or 0 for no limit: --time-limit 600"
        raise problem("runtime/bad-limit", f"the time limit is {seconds:g} seconds", where="--time-limit", fix=fix)


def problem_of(error: BaseException) -> Problem | None:
    """Returns the problem for an error that is, or was caused by, a refusal of the operating system; else None."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if isinstance(found, MemoryError) or _SHORTAGE.search(str(found)):
            return _no_memory(found)
        if isinstance(found, FileNotFoundError) and found.filename is None and not _has_current_folder():
            return _no_current_folder(found)
        if isinstance(found, FileNotFoundError) and _NO_TEMPORARY in str(found):
            return _no_temporary_folder(found)
        if isinstance(found, OSError) and found.errno in _KINDS:
            return _KINDS[found.errno](found)
        found = found.__cause__ or found.__context__
    return None


def writing_refused(path: str | Path, error: OSError) -> tuple[str, str]:
    """Returns why the requested file or folder could not be written, and what helps. The error itself may name a
    temporary file beside it."""
    target = Path(path)
    folder = target.absolute().parent
    if error.errno == errno.ENAMETOOLONG:
        found = devices.too_long(str(path))
        return found.why, found.fix
    elsewhere = f"give another path, such as {pasted(Path(tempfile.gettempdir()) / target.name)}"
    if not folder.exists():
        return f"the folder {folder} does not exist", _made(folder)
    if not folder.is_dir():
        return f"{folder} is a file, not a folder", elsewhere
    if target.is_dir():
        return f"{target} is a folder", f"give the path of a file in it, such as {pasted(target / 'new')}"
    why = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"this user may not write to the folder {folder}: {why}", elsewhere
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full", f"free some space, or {elsewhere}"
    return why, elsewhere


def refuse_missing(folder: Path) -> None:
    """Raises if the folder to write to does not exist.

    Raises:
        OnnxsmithError: `save/no-folder`.
    """
    if not folder.is_dir():
        raise no_folder(folder)


def _made(folder: Path) -> str:
    """Returns the command that makes a folder, with a relative path if it is in the current folder."""
    short = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    return f"`mkdir -p {pasted(short)}`"


def no_folder(folder: Path) -> OnnxsmithError:
    """Returns the problem of a folder to write to that does not exist."""
    return problem(
        "save/no-folder",
        "the folder to write to does not exist",
        where=str(folder),
        fix=_made(folder),
    )


def _too_many(error: OSError) -> Problem:
    return Problem(
        "run/too-many-files",
        "the limit on open files is reached",
        where=_place(error),
        why=str(error),
        fix="raise it for this shell: ulimit -n 4096",
    )


def _no_memory(error: BaseException) -> Problem:
    return Problem(
        "run/no-memory",
        "this process got no more memory",
        why=f"{type(error).__name__}: {error}".removesuffix(": "),
        fix="end other programs, raise the limit that `ulimit -v` shows, or use a machine with more memory",
    )


def _has_current_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _no_current_folder(error: OSError) -> Problem:
    return Problem(
        "run/no-current-folder",
        "the current folder was removed",
        why=f"relative paths start there, and the system has no path for it: {error}",
        fix="change to a folder that exists, and run the command again: `cd`",
    )


def _no_temporary_folder(error: OSError) -> Problem:
    return Problem(
        "run/no-temporary-folder",
        "no file can be written to any folder for temporary files",
        why=f"{error.strerror}: each of them is missing, full, read-only or over a limit of this process (`ulimit -f`)",
        fix="put temporary files into a folder that takes files: TMPDIR=/other/disk",
    )


def _full(error: OSError) -> Problem:
    return Problem(
        "run/disk-full",
        "the disk is full",
        where=_place(error),
        why=str(error),
        fix="free some space, or put temporary files on another disk: TMPDIR=/other/disk",
    )


def _not_permitted(error: OSError) -> Problem:
    return Problem(
        "run/not-permitted",
        "a file or folder cannot be used",
        where=_place(error),
        why=str(error),
        fix="check its permissions (`ls -ld`), and whether its disk is mounted read-only",
    )


def _place(error: OSError) -> str:
    name = error.filename
    return name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name or "")


def _too_long(error: OSError) -> Problem:
    return devices.too_long(_place(error))


_KINDS = {
    errno.ENOMEM: _no_memory,
    errno.EMFILE: _too_many,
    errno.ENFILE: _too_many,
    errno.ENAMETOOLONG: _too_long,
    errno.ENOSPC: _full,
    errno.EDQUOT: _full,
    errno.EACCES: _not_permitted,
    errno.EPERM: _not_permitted,
    errno.EROFS: _not_permitted,
}
