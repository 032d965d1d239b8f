"""Processes that this one starts: how they end with all that they started, and how to say why one ended."""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

_killpg = getattr(os, "killpg", None)
_STATUSES = {
    0xC0000005: "access violation",
    0xC0000017: "no memory",
    0xC000001D: "illegal instruction",
    0xC0000094: "division by zero",
    0xC00000FD: "stack overflow",
    0xC0000135: "a library was not found",
    0xC0000374: "heap corruption",
    0xC0000409: "stack buffer overrun",
}
"""Windows' names for how a process dies (ntstatus.h)."""
_SEVERE = 0xC0000000


class Children(ABC):
    """Starts processes that can be ended together with what they started in turn."""

    @abstractmethod
    def start(self, words: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        """As `subprocess.Popen`, with the process at the head of a group of its own."""

    @abstractmethod
    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Ends the process and what it started, and waits for it."""

    @abstractmethod
    def temporary(self, folder: str) -> Mapping[str, str]:
        """Variables of the environment that have a child, and the libraries in it, write temporary files there."""


class Groups(Children):
    """POSIX: a session of its own, whose processes get one signal."""

    def start(self, words: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, start_new_session=True, **how)

    def end(self, process: subprocess.Popen[bytes]) -> None:
        assert _killpg is not None
        with suppress(ProcessLookupError):
            _killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def temporary(self, folder: str) -> Mapping[str, str]:
        return {"TMPDIR": folder}


class Trees(Children):
    """Windows: the program `taskkill` ends a process and those below it."""

    def start(self, words: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        flag = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        return subprocess.Popen(words, creationflags=flag, **how)

    def end(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, timeout=20)
        process.kill()
        process.communicate()

    def temporary(self, folder: str) -> Mapping[str, str]:
        return dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)


HERE: Children = Trees() if _killpg is None else Groups()


def crashed(code: int) -> bool:
    """Whether an exit status is the operating system's, and not one that the program chose."""
    return code < 0 or code >= _SEVERE


def cause_of_end(code: int) -> str:
    """An exit status in words: `signal SIGSEGV`, `exit status 3`, `exit status 0xC0000005 (access violation)`."""
    if code < 0:
        return f"signal {_signal(-code)}"
    if code < _SEVERE:
        return f"exit status {code}"
    return f"exit status 0x{code:08X}" + (f" ({_STATUSES[code]})" if code in _STATUSES else "")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal, say
        return str(number)
