"""One tool on one file, in a process of its own; and whether what it wrote is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onnxsmith import OnnxsmithError
from onnxsmith.verification.sessions import verify_models

TOOL_PROCESS = Path(__file__).with_name("tool_process.py")
OUR_OWN_FAULT = ("model/", "runtime/", "run/")
"""Ids of problems that the file itself has."""


@dataclass(frozen=True)
class Attempt:
    """What came of one run of a tool. `error` is empty when it wrote a file; CPU is user and system seconds."""

    cpu: float
    peak_mib: float | None
    status: str
    error: str


def attempt(tool: str, source: Path, target: Path, timeout: float) -> Attempt:
    """Runs the tool; `status` is `written`, `refused` (an error, no file, or over the time limit) or `crashed`."""
    with tempfile.TemporaryDirectory() as folder:
        said, told = Path(folder) / "said", Path(folder) / "peak"
        command = [sys.executable, "-P", str(TOOL_PROCESS), tool, str(source), str(target), str(told)]
        with said.open("wb") as words:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=words, stderr=words, start_new_session=True
            )
            late = _wait(process, timeout)
        cpu, status = late[1], late[2]
        peak = float(told.read_text() or 0) / 1024 if told.exists() else None
        if late[0]:
            return Attempt(cpu, None, "refused", f"over {timeout:.0f} s")
        if os.WIFSIGNALED(status):
            return Attempt(cpu, None, "crashed", signal.Signals(os.WTERMSIG(status)).name)
        if status or not target.exists():
            return Attempt(cpu, peak, "refused", _last_words(said))
        return Attempt(cpu, peak, "written", "")


def _wait(process: subprocess.Popen[bytes], timeout: float) -> tuple[bool, float, int]:
    """Whether it was ended for its time, its CPU seconds, and its wait status."""
    late = False

    def end(*_: object) -> None:
        nonlocal late
        late = True
        os.killpg(process.pid, signal.SIGKILL)

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    process.returncode = os.waitstatus_to_exitcode(status)
    return late, usage.ru_utime + usage.ru_stime, status


def _last_words(said: Path) -> str:
    lines = said.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "no file was written"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the block when it takes longer."""

    def late(*_: object) -> None:
        raise TimeoutError(f"over {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def judged(source: Path, target: Path, timeout: float) -> tuple[str, str]:
    """Whether `target` computes what `source` does, by onnxsmith's own verification, the same for every tool.

    `right`, `wrong` (it answers differently), `interface` (it answers the same, but inputs or outputs are gone, renamed
    or frozen), `invalid` (it cannot be read, or ONNX Runtime does not take it) or `unverified` (nothing could be
    compared), and why.
    """
    try:
        with time_limit(timeout):
            found = verify_models(source, target)
    except OnnxsmithError as error:
        problem = error.problem
        words = " ".join(part for part in (problem.id, problem.what, problem.why) if part)[:300]
        return ("invalid" if problem.id.startswith(OUR_OWN_FAULT) else "unverified"), words
    except TimeoutError as error:
        return "unverified", str(error)
    if found.equal:
        return "right", ""
    reasons = [
        f"{output.name}: {output.reason} (by {output.worst_abs:.2g} at a scale of {output.scale:.2g})"
        for output in found.outputs
        if not output.equal
    ]
    return ("wrong" if reasons else "interface"), "; ".join([*reasons, *found.notes])[:300]
