"""Decides what Ctrl-C does: during imports it ends the process; during a command it raises KeyboardInterrupt."""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ExtensionFileLoader
from types import FrameType

INTERRUPTED = 130
"""Exit status of a process that Ctrl-C ended: 128 plus the number of SIGINT, as shells count it."""
_AGAIN = 0.02
"""Seconds until an interrupt is tried again. A native module loads in a few tenths of a second."""


def begin() -> None:
    """Makes an interrupt end the process. Keeps SIGINT ignored in a background job, where the shell set it so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


@contextmanager
def unwinding() -> Iterator[Callable[[], bool]]:
    """Makes an interrupt raise KeyboardInterrupt inside the block, so that no half-written file stays.

    An interrupt during the import of a native module is delayed until the module is loaded. A Python error inside the
    initialisation of C++ code would end the process (seen with nanobind: a segmentation fault, or `terminate`).

    Yields a function that returns whether an interrupt came: a library that is being imported can turn
    KeyboardInterrupt into an error of its own.
    """
    came: list[int] = []

    def unwind(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if _loads_native_module(frame):
            later = threading.Timer(_AGAIN, _interrupt)
            later.daemon = True
            later.start()
            return
        raise KeyboardInterrupt

    own = signal.getsignal(signal.SIGINT) is _stop
    if own:
        signal.signal(signal.SIGINT, unwind)
    try:
        yield lambda: bool(came)
    finally:
        if own:
            signal.signal(signal.SIGINT, _stop)


class TimeUp(KeyboardInterrupt):
    """The time of a block is over."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises TimeUp in the block after some seconds, and not while a native module loads.

    Raises:
        RuntimeError: this is not the main thread, or the system has no timer signal.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise RuntimeError("a block is limited in the main thread only, on a system with SIGALRM")

    def stop(number: int, frame: FrameType | None) -> None:
        if _loads_native_module(frame):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            raise TimeUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _loads_native_module(frame: FrameType | None) -> bool:
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
            return True
        frame = frame.f_back
    return False


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):  # also ends a wait in the operating system
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
    else:
        _thread.interrupt_main()


def _stop(*_: object) -> None:
    os.write(2, b"onnxsmith: interrupted\n")
    os._exit(INTERRUPTED)
