"""Runs command lines of ours, each in a process that is forked off this one, and finds what a run must not do."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import os
import pkgutil
import re
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnxsmith
from onnxsmith.cli import application
from stressing.file_mutations import CANARY
from stressing.model_mutations import FORGED

REFUSAL, SUCCESS, MEMORY, LINES = 10, 60, 4_000, 40
"""The most seconds of a refusal and of another run, the most megabytes, and the most lines of a refusal. Choices: a
refusal is read by a person who waits. Seconds are those of processors, because other programs use this machine too."""
_HELD = 8 << 30
"""Bytes that a process may ask for: a protection of this machine."""
_PATIENCE = 2
"""The seconds for which standard input stays open behind its text, for a server that answers."""
_SHOWN = 3_000_000
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Matches C0 without line breaks and tabs, DEL, C1, and marks of direction."""
_NATIVE = ("_host", "_child", "__main__", "conftest")
KINDS = (
    "traceback", "unexpected", "signal", "status", "late", "memory", "escape", "control", "forged", "long", "target",
    "leftover", "input",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a run did. `signal` is 0 if the process ended by itself; `escapes` says what was done outside the folder."""

    status: int
    signal: int
    said: str
    seconds: float
    megabytes: float
    ended: bool = True
    escapes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def faults(self) -> dict[str, str]:
        """Returns what the run must not do, by its kind."""
        refused = self.status >= 2
        found = {
            "traceback": "Traceback (most recent call last)" in self.said,
            "unexpected": re.search(r"internal/unexpected.*", self.said),
            "signal": self.ended and self.signal,
            "status": not self.signal and self.status not in (0, 1, 2, 3) and f"status {self.status}",
            "late": (not self.ended or self.seconds > (REFUSAL if refused else SUCCESS)) and f"{self.seconds:.0f} s",
            "memory": self.megabytes > MEMORY and f"{self.megabytes:.0f} MB",
            "escape": "; ".join(self.escapes) or CANARY in self.said,
            "control": _CONTROL.search(self.said),
            "forged": re.search(rf"^{FORGED}.*", self.said, re.MULTILINE),
            "long": refused and self.said.count("\n") > LINES and f"{self.said.count(chr(10))} lines",
            "target": refused and ", ".join(self.targets),
            "leftover": ", ".join(self.leftovers),
            "input": ", ".join(self.changed),
        }
        return {kind: _told(value) for kind, value in found.items() if value}


def _told(value: object) -> str:
    return ascii(value[0])[:100] if isinstance(value, re.Match) else str(value)


def preload() -> None:
    """Imports what a run imports, once for all. It starts no thread: only then may a process be forked."""
    for one in pkgutil.walk_packages(onnxsmith.__path__, "onnxsmith."):
        if not any(part in one.name for part in _NATIVE):
            with contextlib.suppress(ImportError):
                importlib.import_module(one.name)


def run(words: Sequence[str], folder: Path, stdin: Path | None = None) -> Outcome:
    """Runs a command line in the folder."""
    said = folder.parent / "said"
    feeding = (
        subprocess.Popen(["sh", "-c", f'cat "$0"; sleep {_PATIENCE}', stdin], stdout=subprocess.PIPE) if stdin else None
    )
    begun = time.monotonic()
    process = os.fork()
    if process == 0:
        _become(words, folder, said, feeding)
    status, usage = _waited(process, begun + SUCCESS)
    if feeding:
        feeding.stdout.close()
        feeding.kill()
        feeding.wait()
    ended = status is not None
    if status is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        _, status, usage = os.wait4(process, 0)
    with contextlib.suppress(ProcessLookupError):  # processes that it started and left
        os.killpg(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    text = said.read_bytes()[:_SHOWN].decode(errors="replace")
    assert usage is not None
    seconds = usage.ru_utime + usage.ru_stime if ended else time.monotonic() - begun
    return Outcome(max(code, 0), max(-code, 0), text, seconds, usage.ru_maxrss / 1024, ended)


def _waited(process: int, end: float) -> tuple[int | None, resource.struct_rusage | None]:
    while time.monotonic() < end:
        ended, status, usage = os.wait4(process, os.WNOHANG)
        if ended:
            return status, usage
        time.sleep(0.005)
    return None, None


def _become(words: Sequence[str], folder: Path, said: Path, feeding: subprocess.Popen[bytes] | None) -> None:
    """Runs the command line as the only thing that this process does, and ends it."""
    status = 70
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (_HELD, _HELD))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        os.environ["TMPDIR"] = str(folder.parent / "temporary")
        os.dup2(feeding.stdout.fileno() if feeding else os.open(os.devnull, os.O_RDONLY), 0)
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", write_through=True)
        sys.argv, sys.path[0:0] = ["onnxsmith", *words], [str(folder)]
        application.main()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:  # noqa: BLE001 — as Python shows it
        os.write(2, traceback.format_exc().encode())
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def watched(folder: Path) -> Iterator[Path]:
    """Writes the files beside the folder that no run may read, and yields them."""
    for name, content in {
        "canary.txt": CANARY.encode() * 3,
        "canary.data": CANARY.encode() * 99,
        "canary.onnx": CANARY.encode(),
    }.items():
        path = folder.parent / name
        path.write_bytes(content)
        os.utime(path, (1, 2))  # the next reading sets the time of access, also where the system writes it seldom
        yield path


def touched(files: Sequence[Path], expected: set[str]) -> Iterator[str]:
    """Yields what was done with the files beside the folder, and the new ones there."""
    for path in files:
        if not path.exists() or path.stat().st_mtime != 2:
            yield f"{path.name} was changed"
        elif path.stat().st_atime != 1:
            yield f"{path.name} was read"
    for path in files[0].parent.iterdir():
        if path.name not in expected:
            yield f"{path.name} was made"
