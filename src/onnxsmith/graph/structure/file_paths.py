"""Handles file names that are not UTF-8. On Linux a file name is bytes; Python represents invalid UTF-8 as
surrogates."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def is_text(path: Path) -> bool:
    """Whether a path is UTF-8. Native libraries and models accept only UTF-8 paths."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(name: str) -> str:
    """Returns the name with an underscore for every byte that is not UTF-8."""
    return "".join("_" if "\ud800" <= character <= "\udfff" else character for character in name)


def is_possible(path: Path) -> bool:
    """Whether a file can have this path: it has no NUL, and is not too long."""
    try:
        os.lstat(path)
    except ValueError:
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True
