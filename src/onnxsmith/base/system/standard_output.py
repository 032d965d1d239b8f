"""Keeps the standard output of the process for the report, or for a protocol, and opens closed standard streams."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

_kept: list[TextIO] = []
"""Holds the stream that `keep` made."""
_output: list[int] = []
"""Holds the descriptor of standard output if the output of a command goes there."""


def open_closed() -> None:
    """Opens the null device as each standard stream that the process has not got. The next file that the process opens
    would have its number, and would get what native code or a started process prints. Call it before any other file is
    opened."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


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
    return os.fdopen(_taken(), "w", encoding="utf-8", newline="\n")


def take_for_output() -> None:
    """Gives the standard output of the process to the output of a command. Its report goes to standard error."""
    _output[:] = [_taken()]


def descriptor() -> int:
    """Returns the file descriptor to which an output at `/dev/stdout` is written."""
    return _output[0] if _output else 1


def _taken() -> int:
    if not _kept:  # the command runs inside another program
        return os.dup(1)
    kept = _kept[0]
    kept.flush()
    output = os.dup(kept.fileno())
    os.dup2(2, kept.fileno())
    return output
