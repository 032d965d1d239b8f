"""Runs one step in a process of its own, under limits. A crash is a result."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import onnxsmith
from onnxsmith.base import folders
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.system import children, machine
from onnxsmith.fleet import cell_limits, reasons
from onnxsmith.fleet.row import Outcome, StepResult
from onnxsmith.fleet.step_host import STAGE
from onnxsmith.runtimes._call_limits import is_shortage

_TAIL = 16_000
"""Limits the bytes of standard error that a row keeps. A choice: the stack of a crash, with the names of the extension
modules that Python lists below it, takes some 10,000."""

_EVERY = 0.1
"""Seconds between two looks at a watched step. A choice: a reader does not notice it."""

_running: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()
_stopped = threading.Event()


class StoppedError(Exception):
    """The run was stopped while the step ran, so that the step has no result."""


class Watch:
    """Follows one running step from another thread, and ends it. `hear` is called with each stage that begins."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self.hear = hear
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Ends the step, also if it has not begun. It raises StoppedError where it was called."""
        self._stopped.set()

    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()


def stop_all() -> None:
    """Ends all running steps of this process. Each raises StoppedError where it was called."""
    _stopped.set()
    with _lock:
        processes = list(_running)
    for process in processes:
        children.HERE.kill(process)


@contextmanager
def stoppable() -> Iterator[None]:
    """Lets steps be started again after `stop_all`."""
    _stopped.clear()
    try:
        yield
    finally:
        _stopped.clear()


def run(
    verb: str,
    words: Sequence[str],
    *,
    python: str,
    folder: str,
    seconds: float,
    memory: int,
    variables: Mapping[str, str],
    watch: Watch | None = None,
) -> StepResult:
    """Runs `onnxsmith VERB --json WORDS` in `folder`, and returns how it ended. `seconds` and `memory` (bytes) are
    limits, 0 for none. `watch` follows the step.

    Raises:
        StoppedError: `stop_all` was called, or `stop` of the watch.
        OSError: the process could not be started.
    """
    hosted = ["-P", "-X", "faulthandler", "-m", "onnxsmith.fleet.step_host"]
    command = [python, *hosted, str(memory), *verb.split(), "--json", *words]
    began, kills = time.monotonic(), machine.HERE.memory_kills()
    # Files, not pipes: a pipe would stay open as long as any process that the step started.
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said, _stage_file() as stage:
        process = _started(command, folder, {**variables, STAGE: str(stage)}, printed, said)
        is_late = False
        try:
            _wait(process, seconds, watch, stage)
        except subprocess.TimeoutExpired:
            is_late = True
        finally:
            _end(process)
        passed = time.monotonic() - began
        if _stopped.is_set():
            raise StoppedError
        printed.seek(0)
        report = None if is_late else _report(printed.read())
        report = report and cell_limits.told(report, verb, memory)
        tail, doing = _end_of(said), _text(stage)
    typed = ("onnxsmith", *verb.split(), *words)
    was_short = kills != machine.HERE.memory_kills()
    if is_late:
        during = f" in the stage {doing!r}" if doing else ""
        outcome, headline, problem = Outcome.TIMEOUT, f"stopped after {seconds:g} s{during}", "runtime/timeout"
    else:
        outcome, headline, problem = _outcome(process, report, tail, memory, was_short=was_short)
    return StepResult(verb, typed, outcome, headline, passed, problem, report, "" if report is not None else tail)


def _wait(process: subprocess.Popen[bytes], seconds: float, watch: Watch | None, stage: OwnPath) -> None:
    """Waits for the end of the process, and tells a watch what the process is doing.

    Raises:
        subprocess.TimeoutExpired: the process takes longer than `seconds`.
        StoppedError: the watch was stopped.
    """
    if watch is None:
        process.wait(seconds or None)
        return
    begin, told = time.monotonic(), ""
    while True:
        if watch.is_stopped():
            raise StoppedError
        if (doing := _text(stage)) not in ("", told):
            told = doing
            watch.hear(doing)
        left = begin + seconds - time.monotonic() if seconds else _EVERY
        try:
            process.wait(max(min(_EVERY, left), 0.0))
        except subprocess.TimeoutExpired:
            if left <= 0:
                raise
        else:
            return


def _started(
    command: Sequence[str], folder: str, variables: Mapping[str, str], printed: IO[bytes], said: IO[bytes]
) -> subprocess.Popen[bytes]:
    root = str(Path(onnxsmith.__file__).parent.parent)
    paths = (
        os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", "")))) if "site-packages" not in root else ""
    )
    environment = {**os.environ, **({"PYTHONPATH": paths} if paths else {}), "ONNXSMITH_PROGRESS": "none", **variables}
    with _lock:
        if _stopped.is_set():
            raise StoppedError
        process = children.HERE.start(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=printed, stderr=said
        )
        _running.add(process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process with what it started. The pipe to its standard input was open until now: its end would end the
    process, too."""
    children.HERE.kill(process)
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.wait()
    with _lock:
        _running.discard(process)


@contextmanager
def _stage_file() -> Iterator[OwnPath]:
    """Yields the path of a file in which the process says what it is doing."""
    with folders.temporary() as folder:
        yield OwnPath(folder / "stage")


def _text(file: OwnPath) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:  # the environment has an onnxsmith that does not write it
        return ""


def _end_of(said: IO[bytes]) -> str:
    """Returns the end of a file as text."""
    size = said.seek(0, os.SEEK_END)
    said.seek(max(size - _TAIL, 0))
    return said.read(_TAIL).decode(errors="replace")


def _report(printed: bytes) -> dict[str, Any] | None:
    """Returns the report as plain data; None for anything else, such as the report of a version with other verdicts."""
    try:
        report = json.loads(printed)
        Verdict(report["verdict"])
        return report if all(isinstance(one, dict) for one in report.get("problems", [])) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _outcome(
    process: subprocess.Popen[bytes],
    report: dict[str, Any] | None,
    tail: str,
    memory: int,
    *,
    was_short: bool,
) -> tuple[Outcome, str, str]:
    """Returns the outcome of a step, its headline and the id of its problem. `was_short`: the system ended a
    process for lack of memory while the step ran."""
    if report is not None:
        problems = report.get("problems") or [{}]
        worst = problems[0]
        outcome = Outcome(report["verdict"])
        if outcome is Outcome.FAILED and (
            worst.get("id") == "runtime/memory" or is_shortage(str(worst.get("why", "")))
        ):
            outcome = Outcome.MEMORY
        if outcome is Outcome.DIFFERENT and reasons.is_refusal(report):
            outcome = Outcome.REFUSED
        return outcome, reasons.of_report(report), str(worst.get("id", ""))
    if is_shortage(tail):
        return Outcome.MEMORY, cell_limits.ran_out(memory), ""
    code = process.returncode
    cause = children.cause_of_end(code)
    if cause == "signal SIGKILL" and was_short:
        return Outcome.MEMORY, "the system ended the process for lack of memory", ""
    if cause == "signal SIGKILL":
        cause += ": the process was ended from outside, which the system does when memory is short"
    return Outcome.CRASHED, reasons.of_end(cause, tail), ""
