"""Ends a process whose native code does not let Python answer Ctrl-C, SIGTERM or SIGHUP.

Python runs a handler in the main thread, between two of its instructions. While that thread is in native code, such as
onnx's checker, no handler runs; and if the native code holds the interpreter's lock, no other thread runs either. But
what the system calls at a signal, a C function of Python, writes the number of the signal into a pipe
(`signal.set_wakeup_fd`). A forked process reads this pipe, and ends the first process if no answer follows.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

_WAIT = 5.0
"""Seconds that Python has for its answer to a signal. A choice: shorter than the patience of a user."""
_APART = 0.5
"""Seconds after which one more signal is a demand. A choice: `timeout` sends each signal twice, at once."""
_GONE = 10.0
"""Seconds until the system has removed an ended process. A choice: it has to free its memory."""
_ANSWER = 0
ENDING = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""The signals that end a command. Windows has no SIGHUP, which a terminal sends when it is closed."""
_NOTICE = b"onnxsmith: interrupted: native code did not return, so the process was ended\n"


class UnansweredSignals(ABC):
    """Watches for signals that Python does not answer."""

    @abstractmethod
    def watch(self, clear: Callable[[Path], object]) -> None:
        """Begins to watch this process. Call it in the main thread, before there are others. After the process was
        ended, `clear` is called with each folder in which the process held a hidden folder."""

    @abstractmethod
    def answer(self) -> None:
        """Says that Python handles the signals that came until now."""


class ForkedWatch(UnansweredSignals):
    """POSIX: a forked process watches."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        """The end of the pipe into which signals are written, in the watched process."""

    def watch(self, clear: Callable[[Path], object]) -> None:
        if self._pipe is not None:
            return
        try:
            reading, writing = os.pipe()
            watched, child = os.getpid(), os.fork()
        except OSError:  # the limit on processes or files is reached: the command runs all the same
            return
        if child == 0:
            os.close(writing)
            _watch(reading, watched, clear)
        os.close(reading)
        os.set_blocking(writing, False)
        self._pipe = writing
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=self._leave)

    def answer(self) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.write(self._pipe, bytes([_ANSWER]))

    def _leave(self) -> None:
        """Takes a forked child out of the watch: its signals are its own."""
        if self._pipe is not None:
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.set_wakeup_fd(-1)
            os.close(self._pipe)
            self._pipe = None


class Unwatched(UnansweredSignals):
    """Windows: Ctrl-C waits until native code returns."""

    def watch(self, clear: Callable[[Path], object]) -> None:
        pass

    def answer(self) -> None:
        pass


HERE: UnansweredSignals = ForkedWatch() if hasattr(os, "fork") else Unwatched()


def _watch(pipe: int, watched: int, clear: Callable[[Path], object]) -> NoReturn:
    """Waits until the process `watched` ends, or leaves a signal unanswered; then ends it. Never returns."""
    try:
        for number in ENDING:  # a terminal sends them to both processes
            signal.signal(number, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):  # the reader of a pipe must not wait for this process
            os.dup2(nothing, stream)
        if _is_unanswered(pipe) and os.getppid() == watched:
            left = _hidden_folders(watched)
            os.write(2, _NOTICE)
            os.kill(watched, signal.SIGKILL)
            end = time.monotonic() + _GONE
            while os.getppid() == watched and time.monotonic() < end:
                time.sleep(0.01)
            for folder in left:
                clear(folder)
    finally:
        os._exit(0)


def _is_unanswered(pipe: int) -> bool:
    """Reads signals and answers. Returns True when a signal has no answer in time, False when the process ends."""
    first, end = 0.0, None
    while True:
        left = None if end is None else max(0.0, end - time.monotonic())
        if not select.select([pipe], [], [], left)[0]:
            return True
        received = os.read(pipe, 1024)
        if not received:
            return False
        for number in received:
            now = time.monotonic()
            if number == _ANSWER:
                end = None
            elif number in ENDING and end is None:
                first, end = now, now + _WAIT
            elif number in ENDING and now - first > _APART:
                return True


def _hidden_folders(process: int) -> set[Path]:
    """Returns the folders in which a process holds hidden folders (`base/folders.py`): each holds an open file. Returns
    nothing on a system without `/proc`; there the next command clears them."""
    found = set()
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                opened = file.readlink()
                if opened.name == ".owner":
                    found.add(opened.parent.parent)
    return found
