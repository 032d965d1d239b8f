"""Shows a progress bar with the running stage on standard error after two seconds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from onnxsmith.base.clock import listening
from onnxsmith.cli.render import terminal
from onnxsmith.cli.render.remaining import Remaining

DELAY = 2.0
"""Seconds before the bar is shown. A choice: a shorter command needs no bar."""


@contextmanager
def shown(console: Console | None = None, delay: float = DELAY) -> Iterator[None]:
    """Shows the stages that run inside the block, and clears the bar at its end. A stage whose length is known has a
    bar that fills, the count of its steps, and an estimate of the time that is left of it."""
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[left]}", markup=False),
        TimeElapsedColumn(),
        console=console or terminal.console(stderr=True),
        transient=True,
    )
    task = progress.add_task("", total=None, left="")
    remaining = Remaining()

    def hear(stage: str, done: int, total: int) -> None:
        progress.update(
            task, description=stage, completed=done, total=total or None, left=remaining.words(stage, done, total)
        )

    timer = threading.Timer(delay, progress.start)
    timer.daemon = True
    timer.start()
    try:
        with listening(hear):
            yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
