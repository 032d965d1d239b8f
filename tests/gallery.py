"""Runs the commands of an example in this process, or in one that has imported torch already: a new process for each
would import it each time."""

from __future__ import annotations

import asyncio
import contextlib
import io
import linecache
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

from onnxsmith.cli import application, fix_trial
from tests import forking

STATUS = ' || echo "exit status: $?"'
"""What a command that is expected to fail ends with, so that its status is shown."""

_SHELL = re.compile(r"[|&;<>$`*]|^!")


def printed(command: str, variables: Mapping[str, str]) -> tuple[str, int]:
    """What a command prints, errors too, and its exit status. It runs in the current folder.

    `onnxsmith …` and `python FILE …` run in this process, all other commands in bash. Commands of an example that
    defines operators of PyTorch, which would stay defined here for the tests after it, have a process each.
    """
    bare = command.removesuffix(STATUS)
    words = [] if _SHELL.search(bare.replace("'", '"')) and _unquoted(bare) else shlex.split(bare)
    if not words or not _is_ours(words):
        return in_bash(command, variables)
    alone = any(defines_operators(file.read_text(encoding="utf-8")) for file in Path().glob("*.py"))
    text, status = apart(words, variables) if alone else called(forking.program(words), words[1:])
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


def apart(words: list[str], variables: Mapping[str, str]) -> tuple[str, int]:
    """What a command prints in a process of its own, errors too, and its exit status."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output:
        process = forking.started(words, variables, output.name)
        process.join()
        return output.read(), process.exitcode or 0


def defines_operators(text: str) -> bool:
    """Whether a program defines operators of PyTorch, or how they are translated: they stay defined in its process."""
    return "torch.library" in text or "onnxsmith.register" in text


def _unquoted(command: str) -> bool:
    """Whether a character that the shell treats specially stands outside of quotes."""
    return _SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", command)) is not None


def _is_ours(words: list[str]) -> bool:
    return words[0] == "onnxsmith" or (words[0] == "python" and words[1].endswith(".py"))


def called(program: Callable[[], object], arguments: list[str]) -> tuple[str, int]:
    """What a program prints with these arguments, and its exit status."""
    output = io.StringIO()
    status: object = 0
    before = sys.argv
    sys.argv = ["onnxsmith", *arguments] if program is application.main else arguments
    linecache.checkcache()
    loop = asyncio._get_running_loop()  # playwright leaves its own, and a second one is refused
    asyncio._set_running_loop(None)
    untried = mock.patch.object(fix_trial, "_LEAST_SECONDS", math.inf)  # it would depend on the time that a run took
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), warnings.catch_warnings(), untried:
        warnings.simplefilter("ignore")  # as a user's process has it, not as the tests have it
        try:
            program()
        except SystemExit as error:
            status = error.code
        finally:
            sys.argv = before
            asyncio._set_running_loop(loop)
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
