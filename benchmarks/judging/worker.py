"""A process that judges one case after the other, so that a crash or an endless case costs that case alone."""

from __future__ import annotations

import contextlib
import importlib
import logging
import multiprocessing
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


class Worker:
    """Calls functions by `module:name` in a process of its own; ends with the block."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Any = None

    def call(self, function: str, *arguments: Any, timeout: float) -> tuple[Any, str]:
        """What the function gives, or None and why it gave nothing."""
        if self._process is None:
            self._start()
        self._pipe.send((function, arguments))
        try:
            if not self._pipe.poll(timeout):
                self.close()
                return None, f"over {timeout:.0f} s"
            given, error = self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join(5)
            code = self._process.exitcode
            self.close()
            return None, f"the process died with {code}"
        return given, error

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), daemon=False)
        self._process.start()
        other.close()

    def close(self) -> None:
        """Ends the process and those that it started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.join()
            self._process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(pipe: Connection) -> None:
    os.setpgrp()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        try:
            module, _, name = function.partition(":")
            with _silent():
                answer = getattr(importlib.import_module(module), name)(*arguments), ""
        except Exception as error:  # noqa: BLE001 — it is the caller's to count
            where = traceback.extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({where.filename}:{where.lineno})"
            answer = None, said
        try:
            pipe.send(answer)
        except BrokenPipeError:  # the caller was ended
            return


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """What libraries print goes nowhere."""
    sys.stdout.flush()
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
