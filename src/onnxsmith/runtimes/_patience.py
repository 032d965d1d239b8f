"""Limits the time of other people's Python code in this process, which cannot be killed. The code is interrupted
between two steps of the interpreter; native code runs to its end."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator


class TooLongError(BaseException):
    """Says that the time is over. This is not an Exception, so that the interrupted code does not catch it among its
    own errors."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TooLongError in this thread if the block takes longer than `seconds`; 0 for no limit."""
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
        """Stops sending the exception, and returns whether it was sent."""
        with self._lock:
            self._over = True
            return self._sent


def _await() -> None:
    """Waits for an exception that was sent at the last moment, so that the exception does not arrive later. The
    exception cannot be recalled: clearing it leaves the interpreter's flag set, and CPython 3.11 then never ends under
    a profile function."""
    with contextlib.suppress(TooLongError):
        for _ in range(_STEPS):
            time.sleep(0.001)


_STEPS = 1000
"""Limits the milliseconds to wait for the exception. A choice: the interrupted code catches the exception within a
second."""
