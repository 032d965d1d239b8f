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
    try:
        yield
    finally:
        timer.cancel()
        stop.end()


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

    def end(self) -> None:
        """The block is over: what was sent and has not arrived arrives here, and nowhere later."""
        with self._lock:
            self._over = True
            self._sent, sent = False, self._sent
        if sent:
            with contextlib.suppress(TooLongError):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), None)
                time.sleep(0)
