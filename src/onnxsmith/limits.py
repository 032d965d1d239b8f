"""Turns refusals of the operating system into problems: open files, disk space, permissions."""

from __future__ import annotations

import errno

from onnxsmith.problem import Problem


def problem_of(error: BaseException) -> Problem | None:
    """Returns the problem for an error that is, or was caused by, a refusal of the operating system; else None."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if isinstance(found, OSError) and found.errno in _KINDS:
            return _KINDS[found.errno](found)
        found = found.__cause__ or found.__context__
    return None


def _too_many(error: OSError) -> Problem:
    return Problem(
        "run/too-many-files",
        "the limit on open files is reached",
        where=_place(error),
        why=str(error),
        fix="raise it for this shell: ulimit -n 4096",
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


_KINDS = {
    errno.EMFILE: _too_many,
    errno.ENFILE: _too_many,
    errno.ENOSPC: _full,
    errno.EDQUOT: _full,
    errno.EACCES: _not_permitted,
    errno.EPERM: _not_permitted,
    errno.EROFS: _not_permitted,
}
