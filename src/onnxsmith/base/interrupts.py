"""Decides what Ctrl-C, SIGTERM and SIGHUP (a closed terminal) do: during imports they end the process; during a command
they raise KeyboardInterrupt. If native code does not let Python raise it, `unanswered_signals.py` ends the process."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import FrameType
from typing import Any

from onnxsmith.base.system import unanswered_signals

INTERRUPTED = 130
"""Exit status of a process that Ctrl-C ended: 128 plus the number of SIGINT, as shells count it."""
_AGAIN = 0.02
"""Seconds until an interrupt is tried again. A native module loads in a few tenths of a second."""


_limits: list[float] = []
"""Holds the seconds of each block that is limited now."""


def begin() -> None:
    """Makes an interrupt end the process. Keeps SIGINT ignored in a background job, where the shell set it so,
    and SIGHUP under `nohup`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    for number in unanswered_signals.ENDING[1:]:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)
    unanswered_signals.HERE.watch(_clear)


def _clear(folder: Path) -> None:
    from onnxsmith.base import folders  # its imports take longer than the rest of the start

    folders.clear(folder)


@contextmanager
def unwinding() -> Iterator[Callable[[], bool]]:
    """Makes an interrupt raise KeyboardInterrupt inside the block, so that no half-written file stays.

    An interrupt during the import of a native module is delayed until the module is loaded. A Python error inside the
    initialisation of C++ code would end the process (seen with nanobind: a segmentation fault, or `terminate`). An
    interrupt that Python drops, because it came in a finaliser or in a callback of C code, is raised again.

    Yields a function that returns whether an interrupt came: a library that is being imported can turn
    KeyboardInterrupt into an error of its own.
    """
    came: list[int] = []

    def unwind(number: int, frame: FrameType | None) -> None:
        came.append(number)
        unanswered_signals.HERE.answer()
        if _loads_native_module(frame):
            _interrupt_later()
            return
        raise KeyboardInterrupt

    own = [one for one in unanswered_signals.ENDING if signal.getsignal(one) is _stop]
    for one in own:
        signal.signal(one, unwind)
    before, sys.unraisablehook = sys.unraisablehook, _raised_again(sys.unraisablehook)
    try:
        yield lambda: bool(came)
    finally:
        sys.unraisablehook = before
        for one in own:
            signal.signal(one, _stop)


def _raised_again(before: Callable[[Any], object]) -> Callable[[Any], None]:
    """Returns the hook for exceptions that Python drops: an interrupt is sent again, others go to the hook `before`."""

    def dropped(found: Any) -> None:
        if isinstance(found.exc_value, TimeUp):
            if _limits:
                signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        elif isinstance(found.exc_value, KeyboardInterrupt):
            _interrupt_later()
        else:
            before(found)

    return dropped


class Stopped(KeyboardInterrupt):
    """An interrupt of work of which a part is kept. `kept` says in words what is kept."""

    def __init__(self, kept: str) -> None:
        super().__init__(kept)
        self.kept = kept


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
    _limits.append(seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        _limits.pop()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _loads_native_module(frame: FrameType | None) -> bool:
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
            return True
        frame = frame.f_back
    return False


def _interrupt_later() -> None:
    later = threading.Timer(_AGAIN, _interrupt)
    later.daemon = True
    later.start()


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):  # also ends a wait in the operating system
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
    else:
        _thread.interrupt_main()


def _stop(number: int, _: object) -> None:
    os.write(2, b"onnxsmith: interrupted\n")
    os._exit(128 + number)
