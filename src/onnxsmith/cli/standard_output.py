"""Keeps the standard output of the process for the report, or for a protocol."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

_kept: list[TextIO] = []
"""Holds the stream that `keep` made."""


def keep() -> None:
    """Lets `sys.stdout` alone write to the standard output of the process. What native code or a started process prints
    there goes to standard error, also what is still in a buffer of C when the process ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a closed stream stays as it is
        sys.stdout.flush()
        output = os.dup(sys.stdout.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        sys.stdout = os.fdopen(output, "w", encoding=sys.stdout.encoding)
        _kept[:] = [sys.stdout]


def take() -> TextIO:
    """Returns a stream in UTF-8 that alone writes to the standard output of the process. The stream that `keep` made
    goes to standard error from now on, and so does the report of the command.

    Raises:
        OSError: standard output is closed.
    """
    if not _kept:  # the command runs inside another program
        return os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    kept = _kept[0]
    kept.flush()
    output = os.dup(kept.fileno())
    os.dup2(2, kept.fileno())
    return os.fdopen(output, "w", encoding="utf-8", newline="\n")
