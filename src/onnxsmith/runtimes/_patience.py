"""A limit of time for Python code of others in this process, where nothing can be killed: it is interrupted between two
steps of the interpreter. What runs natively is waited for."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator


class TooLongError(BaseException):
    """The time is over. No Exception, so that the code that it ends does not take it for one of its own."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TooLongError in this thread when the block takes longer; 0 for no limit."""
    if not seconds:
        yield
        return
    stop = _Stop(threading.get_ident())
    timer = threading.Timer(seconds, stop.now)
    timer.daemon = True
    timer.start()
    arrived = False
    try:
        yield
    except TooLongError:
        arrived = True
        raise
    finally:
        timer.cancel()
        if stop.end() and not arrived:
            _await()


class _Stop:
    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._lock = threading.Lock()
        self._over = self._sent = False

    def now(self) -> None:
        with self._lock:
            if not self._over:
                self._sent = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(TooLongError))

    def end(self) -> bool:
        """Whether the exception was sent; from now on it is not."""
        with self._lock:
            self._over = True
            return self._sent


def _await() -> None:
    """Takes what was sent at the last moment, so that it arrives nowhere later. It cannot be called back: clearing it
    leaves the interpreter's flag set, with which CPython 3.11 never ends under a profile function."""
    with contextlib.suppress(TooLongError):
        for _ in range(_STEPS):
            time.sleep(0.001)


_STEPS = 1000
"""Milliseconds after which it has been taken by the code that was run."""
