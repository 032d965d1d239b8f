"""Programs in processes of their own, forked off one that has imported what an export needs and has run nothing: a new
process takes three seconds of imports, a forked one none."""

from __future__ import annotations

import atexit
import io
import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

from onnxsmith.cli import application

_PRELOADED = [
    "torch._dynamo",
    "torch.onnx.utils",
    "onnxscript.function_libs.torch_lib.ops",
    "onnxsmith.cli.application",
    "onnxsmith.exporter.export_run",
    "onnxsmith.exporter.strategies.torchscript",
]
"""What an export imports: three seconds of a processor."""


def program(words: list[str]) -> Callable[[], object]:
    """The function that does what a command does: `onnxsmith …`, `python FILE …` or `python -c TEXT`."""
    if words[0] == "onnxsmith":
        return application.main
    if words[1] == "-c":
        return lambda: exec(words[2], {"__name__": "__main__"})
    return lambda: runpy.run_path(words[1], run_name="__main__")


def started(words: list[str], variables: Mapping[str, str], output: str) -> BaseProcess:
    """Starts a command in the current folder, with these environment variables. It writes to the file `output`, errors
    too."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_run, args=(words, str(Path.cwd()), dict(variables), output))
    process.start()
    return process


def _run(words: list[str], folder: str, variables: dict[str, str], output: str) -> None:
    """Runs a command as the only thing that its process does."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.path.insert(0, folder)
    file = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")  # as it is for a pipe
    sys.argv = words if words[0] == "onnxsmith" else words[1:]
    try:
        program(words)()
    finally:
        atexit._run_exitfuncs()  # a fork ends without them


class _Started:
    """What the exporter uses of `subprocess.Popen`, for a process that is forked."""

    def __init__(self, command: list[str], *, stdout: BinaryIO, **_: Any) -> None:
        self._process = started(["python", "-c", command[-1]], os.environ, stdout.name)

    def wait(self, limit: float | None = None) -> int:
        self._process.join(limit)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a forked process", limit or 0)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()


def in_place_of_subprocess() -> SimpleNamespace:
    """What the exporter's module `_apart` has for `subprocess`, with processes that are forked."""
    return SimpleNamespace(**{**vars(subprocess), "Popen": _Started})
