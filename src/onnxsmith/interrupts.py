"""What Ctrl-C does: while libraries are imported it ends the process, while a command works it unwinds it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit status of a process that Ctrl-C ended: 128 and the number of SIGINT."""


def begin() -> None:
    """From now on an interrupt ends the process. A shell has background jobs ignore it, and that stays."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


@contextmanager
def unwinding() -> Iterator[Callable[[], bool]]:
    """In the block an interrupt raises KeyboardInterrupt, so that no half file stays; gives a way to ask whether one
    came, because a library that is being imported makes an error of its own of it."""
    came: list[int] = []

    def unwind(number: int, _: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    own = signal.getsignal(signal.SIGINT) is _stop
    if own:
        signal.signal(signal.SIGINT, unwind)
    try:
        yield lambda: bool(came)
    finally:
        if own:
            signal.signal(signal.SIGINT, _stop)


def _stop(*_: object) -> None:
    os.write(2, b"onnxsmith: interrupted\n")
    os._exit(INTERRUPTED)
