"""Cleans everything that the process prints: hidden characters of a text are written as escapes.

A name in a model, or of a file, reaches standard output and standard error in many ways: in a report, in an error of
the options, in a line of progress, in a warning of another library. All of them pass one of the streams here, or the
console of `render/terminal.py`, which styles its text and writes to the stream behind.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from onnxsmith.base.printable import printable

_BAR = re.compile(r"(?:\r|\x1b\[A)*")
"""Matches how the progress bars of other libraries begin what they write: at the start of the line, or one line up."""


class _Printed:
    """Stands for a stream, and writes texts to it without hidden characters."""

    def __init__(self, stream: TextIO) -> None:
        self.behind = stream

    def write(self, text: str) -> int:
        """Writes a text with escapes in place of its hidden characters."""
        start = _BAR.match(text)
        end = start.end() if start else 0
        self.behind.write(text[:end] + printable(text[end:]))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@contextmanager
def cleaned() -> Iterator[None]:
    """Lets standard output and standard error show every character, while the block runs."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", stream and _Printed(stream)) for stream in before)  # a closed one is None
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def behind(stream: TextIO) -> TextIO:
    """Returns the stream that takes styled text: the one behind a stream of `cleaned`, otherwise the stream itself."""
    return stream.behind if isinstance(stream, _Printed) else stream
