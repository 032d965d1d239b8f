"""Runs the commands of an example in this process, or in one that has imported torch already: a new process for each
would import it each time."""

from __future__ import annotations

import atexit
import contextlib
import io
import linecache
import multiprocessing
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from onnxsmith import cli

STATUS = ' || echo "exit status: $?"'
"""What a command that is expected to fail ends with, so that its status is shown."""

_SHELL = re.compile(r"[|&;<>$`*]|^!")
_PRELOADED = [
    "torch._dynamo",
    "onnxscript.function_libs.torch_lib.ops",
    "onnxsmith.cli",
    "onnxsmith.exporter.export_run",
]
"""What an export imports: three seconds of a processor."""


def printed(command: str, variables: Mapping[str, str]) -> tuple[str, int]:
    """What a command prints, errors too, and its exit status. It runs in the current folder.

    `onnxsmith …` and `python FILE …` run in this process, all other commands in bash. Commands of an example that
    defines operators of PyTorch, which would stay defined here for the tests after it, have a process each.
    """
    bare = command.removesuffix(STATUS)
    words = [] if _SHELL.search(bare.replace("'", '"')) and _unquoted(bare) else shlex.split(bare)
    if not words or not _is_ours(words):
        return in_bash(command, variables)
    apart = any(defines_operators(file.read_text(encoding="utf-8")) for file in Path().glob("*.py"))
    text, status = forked(words, variables) if apart else called(_program(words), words[1:])
    if status and command != bare:
        return f"{text}\nexit status: {status}\n", 0
    return text, status


def in_bash(command: str, variables: Mapping[str, str]) -> tuple[str, int]:
    """What a command prints as a reader starts it, errors too, and its exit status."""
    shell = subprocess.run(
        ["bash", "-c", command],
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return shell.stdout, shell.returncode


def forked(words: list[str], variables: Mapping[str, str]) -> tuple[str, int]:
    """What a command prints in a process of its own, errors too, and its exit status. The process is a fork of one that
    has imported torch and has run nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output:
        process = context.Process(target=_run, args=(words, str(Path.cwd()), dict(variables), output.name))
        process.start()
        process.join()
        return output.read(), process.exitcode or 0


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
        _program(words)()
    finally:
        atexit._run_exitfuncs()  # a fork ends without them


def defines_operators(text: str) -> bool:
    """Whether a program defines operators of PyTorch, or how they are translated: they stay defined in its process."""
    return "torch.library" in text or "onnxsmith.register" in text


def _unquoted(command: str) -> bool:
    """Whether a character that the shell treats specially stands outside of quotes."""
    return _SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", command)) is not None


def _is_ours(words: list[str]) -> bool:
    return words[0] == "onnxsmith" or (words[0] == "python" and words[1].endswith(".py"))


def _program(words: list[str]) -> Callable[[], object]:
    if words[0] == "onnxsmith":
        return cli.main
    if words[1] == "-c":
        return lambda: exec(words[2], {"__name__": "__main__"})
    return lambda: runpy.run_path(words[1], run_name="__main__")


def called(program: Callable[[], object], arguments: list[str]) -> tuple[str, int]:
    """What a program prints with these arguments, and its exit status."""
    output = io.StringIO()
    status: object = 0
    before = sys.argv
    sys.argv = ["onnxsmith", *arguments] if program is cli.main else arguments
    linecache.checkcache()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as a user's process has it, not as the tests have it
        try:
            program()
        except SystemExit as error:
            status = error.code
        finally:
            sys.argv = before
    if isinstance(status, str):
        return f"{output.getvalue()}{status}\n", 1
    return output.getvalue(), int(str(status or 0))


@contextlib.contextmanager
def inside(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """The folder is the current one, its modules can be imported, and leave no trace."""
    modules, path, before = set(sys.modules), list(sys.path), dict(os.environ)
    os.environ.update(variables)
    sys.path.insert(0, str(folder))
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "") or "").startswith(f"{folder}{os.sep}"):
                del sys.modules[name]
