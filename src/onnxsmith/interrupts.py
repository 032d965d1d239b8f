"""Decides what Ctrl-C does: during imports it ends the process; during a command it raises KeyboardInterrupt."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit status of a process that Ctrl-C ended: 128 plus the number of SIGINT, as shells count it."""


def begin() -> None:
    """Makes an interrupt end the process. Keeps SIGINT ignored in a background job, where the shell set it so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


@contextmanager
def unwinding() -> Iterator[Callable[[], bool]]:
    """Makes an interrupt raise KeyboardInterrupt inside the block, so that no half-written file stays.

    Yields a function that says whether an interrupt came: a library that is being imported can turn KeyboardInterrupt
    into an error of its own.
    """
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
