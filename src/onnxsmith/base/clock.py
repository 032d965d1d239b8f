"""Measures the time of each stage of a command, and reports progress.

A command runs inside `with Clock() as clock`. The code that it calls marks its stages with `stage("verify")`. The clock
adds up the seconds for the report. A listener, set by the command line, shows progress. A library call has no listener.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Self

Listener = Callable[[str, int, int], None]
"""A function of (stage, steps done, steps in total). Both numbers are 0 while the total is unknown."""

_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


STARTUP = "start-up"
"""Names the time before the first clock of a command: the start of Python, and imports."""
OTHER = "other"
"""Names the time outside all stages."""

_IMPORTED = time.monotonic()
_first: list[float] = []
"""Holds the time at which the first clock since `command_begins` began."""


class Clock:
    """Seconds by stage, in the order in which the stages began. A stage's seconds leave out the stages inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[float] = []
        self._begin = time.monotonic()
        if not _first:
            _first.append(self._begin)

    def passed(self) -> dict[str, float]:
        """Returns the seconds by stage, and the other seconds since this clock was made."""
        other = time.monotonic() - self._begin - sum(self.seconds.values())
        return {**self.seconds, OTHER: max(0.0, other)}

    def __enter__(self) -> Self:
        self._token = _clock.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _clock.reset(self._token)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time of the block to `name`, without the time of the stages inside the block."""
        self.seconds.setdefault(name, 0.0)
        begin = time.perf_counter()
        self._open.append(0.0)
        try:
            yield
        finally:
            elapsed = time.perf_counter() - begin
            self.seconds[name] += elapsed - self._open.pop()
            if self._open:
                self._open[-1] += elapsed


def process_began() -> float:
    """Returns when this process started, on the scale of `time.monotonic`. Where the system does not tell, this is
    the import of this module."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks = int(fields[19])  # field 22, `starttime`: see proc_pid_stat(5)
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return _IMPORTED
    return time.monotonic() - max(0.0, age)


def command_begins() -> None:
    """Forgets the clocks of earlier commands in this process."""
    _first.clear()


def waited(seconds: Mapping[str, float], begin: float) -> dict[str, float]:
    """Returns the seconds of a command by stage, so that they add up to the time since `begin`. The time before its
    first clock is the start-up."""
    now = time.monotonic()
    startup = max(0.0, (_first[0] if _first else now) - begin)
    stages = {name: value for name, value in seconds.items() if name not in (STARTUP, OTHER)}
    other = max(0.0, now - begin - startup - sum(stages.values()))
    return {STARTUP: startup, **stages, OTHER: other}


@contextmanager
def stage(name: str, of: str = "") -> Iterator[None]:
    """Marks a stage: tells the listener that it began, and measures it if a clock is running. `of` says what the stage
    works on, where a command passes the stage several times; it is shown, and not measured apart."""
    advance(f"{name}: {of}" if of else name, 0, 0)
    clock = _clock.get()
    if clock is None:
        yield
        return
    with clock.stage(name):
        yield


def advance(name: str, done: int, total: int) -> None:
    """Tells the listener how many steps of a stage are done."""
    listener = _listener.get()
    if listener is not None:
        listener(name, done, total)


@contextmanager
def step(what: str, done: int, total: int) -> Iterator[None]:
    """Tells the listener of a step that is long itself, such as one of many models, in place of the stages inside the
    block."""
    advance(what, done, total)
    listener = _listener.get()
    if listener is None:
        yield
        return
    with listening(lambda _stage, _done, _total: listener(what, done, total)):
        yield


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Sends progress to `listener` while the block runs."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
