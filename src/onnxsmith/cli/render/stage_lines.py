"""Prints a line for each stage of a command that takes longer than two seconds, where standard error is no terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from onnxsmith.base.clock import listening

DELAY = 2.0
"""Seconds before the first line. A choice, the same as for the bar: a shorter command needs no progress."""
VARIABLE = "ONNXSMITH_PROGRESS"
"""Names the environment variable that leaves progress out: `none`."""


class _Lines:
    """Writes the first line after `delay` seconds, and then one for each stage that begins for the first time."""

    def __init__(self, stream: TextIO, delay: float) -> None:
        self._stream, self._begin = stream, time.monotonic()
        self._stage = ""
        self._written: set[str] = set()
        self._is_late = delay == 0
        self._lock = threading.Lock()
        self.timer = threading.Timer(delay, self._late)
        self.timer.daemon = True

    def hear(self, stage: str, _done: int, _total: int) -> None:
        with self._lock:
            self._stage = stage
            self._write()

    def _late(self) -> None:
        with self._lock:
            self._is_late = True
            self._write()

    def _write(self) -> None:
        if self._is_late and self._stage and self._stage not in self._written:
            self._written.add(self._stage)
            self._stream.write(f"onnxsmith: {time.monotonic() - self._begin:.0f} s: {self._stage}\n")
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
