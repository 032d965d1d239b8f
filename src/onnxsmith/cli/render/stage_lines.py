"""Prints a line for each stage of a command that takes longer than two seconds, where standard error is no terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from onnxsmith.base.clock import listening
from onnxsmith.cli.render.remaining import Remaining

DELAY = 2.0
"""Seconds before the first line. A choice, the same as for the bar: a shorter command needs no progress."""
AGAIN = 30.0
"""Seconds without a line after which a running stage says how far it is. A choice: a log shows that the command lives,
and stays short."""
VARIABLE = "ONNXSMITH_PROGRESS"
"""Names the environment variable that leaves progress out: `none`."""


class _Lines:
    """Writes the first line after `delay` seconds, and then one for each stage that begins for the first time. A stage
    with a known length says how far it is each half minute."""

    def __init__(self, stream: TextIO, delay: float) -> None:
        self._stream, self._begin = stream, time.monotonic()
        self._stage = ""
        self._written: set[str] = set()
        self._remaining, self._last = Remaining(), 0.0
        self._is_late = delay == 0
        self._lock = threading.Lock()
        self.timer = threading.Timer(delay, self._late)
        self.timer.daemon = True

    def hear(self, stage: str, done: int, total: int) -> None:
        with self._lock:
            self._stage = stage
            far = self._remaining.words(stage, done, total)
            if self._is_late and far and stage in self._written and time.monotonic() - self._last >= AGAIN:
                self._line(f"{stage}: {far}")
            self._write()

    def _late(self) -> None:
        with self._lock:
            self._is_late = True
            self._write()

    def _write(self) -> None:
        if self._is_late and self._stage and self._stage not in self._written:
            self._written.add(self._stage)
            self._line(self._stage)

    def _line(self, text: str) -> None:
        self._last = time.monotonic()
        self._stream.write(f"onnxsmith: {self._last - self._begin:.0f} s: {text}\n")
        self._stream.flush()


@contextmanager
def written(stream: TextIO, delay: float = DELAY) -> Iterator[None]:
    """Writes the stages that run inside the block to `stream`, one line each."""
    lines = _Lines(stream, delay)
    lines.timer.start()
    try:
        with listening(lines.hear):
            yield
    finally:
        lines.timer.cancel()
        lines.timer.join()
