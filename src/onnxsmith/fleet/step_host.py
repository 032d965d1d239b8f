"""Runs one command of onnxsmith in a process that ends with the process that started it.

Standard input is a pipe that the starter holds open. When the starter dies, however it dies, the pipe closes, and this
process ends itself and the processes that it started.
"""

from __future__ import annotations

import io
import os
import runpy
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onnxsmith.base.clock import listening
from onnxsmith.base.system import children, memory_limit

STAGE = "_ONNXSMITH_FLEET_STAGE"
"""Names the variable between a starter and its process. It has the path of a file into which the process writes what it
is doing."""


def main() -> None:
    """Runs the command of the words after the memory limit in bytes (0: none)."""
    limit, *words = sys.argv[1:]
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.set_inheritable(lifeline, False)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(encoding="utf-8")  # the starter reads the report as such on every system
    threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()
    if int(limit):
        memory_limit.HERE.hold(int(limit))
    sys.argv = ["onnxsmith", *words]
    with _telling(os.environ.pop(STAGE, "")):
        runpy.run_module("onnxsmith", run_name="__main__", alter_sys=False)


@contextmanager
def _telling(path: str) -> Iterator[None]:
    """Keeps the stage that runs inside the block in a file, for the starter that may end this process."""
    if not path:
        yield
        return
    written = ""
    with Path(path).open("wb", buffering=0) as file:

        def hear(stage: str, _done: int, _total: int) -> None:
            nonlocal written
            if stage != written:
                written = stage
                file.seek(0)
                file.truncate()
                file.write(stage.encode(errors="replace"))

        with listening(hear):
            yield


def _watch(lifeline: int) -> None:
    while os.read(lifeline, 1):
        pass
    children.HERE.end_own()


if __name__ == "__main__":
    main()
