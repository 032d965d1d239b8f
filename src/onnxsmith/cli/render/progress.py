"""Shows a progress bar with the running stage on standard error after two seconds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from onnxsmith.base.clock import listening

DELAY = 2.0
"""Seconds before the bar is shown. A choice: a shorter command needs no bar."""


@contextmanager
def shown(console: Console | None = None, delay: float = DELAY) -> Iterator[None]:
    """Shows the stages that run inside the block, and clears the bar at its end."""
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        console=console or Console(stderr=True),
        transient=True,
    )
    task = progress.add_task("", total=None)
    timer = threading.Timer(delay, progress.start)
    timer.daemon = True
    timer.start()
    try:
        with listening(
            lambda stage, done, total: progress.update(task, description=stage, completed=done, total=total or None)
        ):
            yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
