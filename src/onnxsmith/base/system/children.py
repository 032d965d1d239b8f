"""Starts and ends child processes with all their descendants, and says why a process ended."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
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
"""Windows' names for the causes of a crash, by exit status (ntstatus.h)."""
_SEVERE = 0xC0000000
SILENT = {"ORT_DISABLE_TELEMETRY": "1"}
"""Sets environment variables for every process that may load a runtime: it sends nothing. onnxruntime 1.32 reports its
use to its maker, as soon as it is imported."""
_PAUSE = 0.5
"""Sets the seconds between two looks at the parent. A choice."""


class Children(ABC):
    """Starts processes that can be ended together with their descendants."""

    @abstractmethod
    def start(self, words: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        """Starts a process as `subprocess.Popen` does, at the head of a group of its own."""

    @abstractmethod
    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Ends the process and its descendants. The caller still has to wait for it."""

    @abstractmethod
    def end_own(self) -> None:
        """Ends this process, and its descendants if it was started by `start`."""

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Ends the process and its descendants, and waits for it."""
        self.kill(process)
        process.communicate()

    @abstractmethod
    def end_with_parent(self, parent: int) -> None:
        """Ends this process soon after the process that started it, `parent`, however that ends. Returns at once."""

    @abstractmethod
    def temporary(self, folder: str) -> Mapping[str, str]:
        """Returns environment variables that make a child and its libraries write temporary files into `folder`."""


class Groups(Children):
    """POSIX: each child leads its own session, and one signal ends all processes of the session."""

    def start(self, words: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, start_new_session=True, **how)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        assert _killpg is not None
        with suppress(ProcessLookupError, PermissionError):  # macOS: PermissionError if only zombies are left
            _killpg(process.pid, signal.SIGKILL)

    def end_own(self) -> None:
        assert _killpg is not None
        if os.getpgrp() == os.getpid():
            _killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)

    def end_with_parent(self, parent: int) -> None:
        watched = (parent, os.getppid())
        threading.Thread(target=self._watch, args=watched, name="end with parent", daemon=True).start()

    def _watch(self, starter: int, parent: int) -> None:
        # Both: the starter may have ended before this process saw its id, or be a zombie, which still has an id.
        with suppress(ProcessLookupError):
            while os.getppid() == parent:
                os.kill(starter, 0)
                time.sleep(_PAUSE)
        os._exit(1)

    def temporary(self, folder: str) -> Mapping[str, str]:
        return {"TMPDIR": folder}


class Trees(Children):
    """Windows: the program `taskkill` ends a process and its descendants."""

    def start(self, words: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        flag = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        return subprocess.Popen(words, creationflags=flag, **how)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        self._end_tree(process.pid)
        process.kill()

    def end_own(self) -> None:
        self._end_tree(os.getpid())
        os._exit(1)

    def _end_tree(self, pid: int) -> None:
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], capture_output=True, timeout=20)

    def end_with_parent(self, parent: int) -> None:
        """Does nothing: Windows does not tell a process that its parent has ended."""

    def temporary(self, folder: str) -> Mapping[str, str]:
        return dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)


HERE: Children = Trees() if _killpg is None else Groups()


def crashed(code: int) -> bool:
    """Whether the operating system set the exit status, rather than the program."""
    return code < 0 or code >= _SEVERE


def cause_of_end(code: int) -> str:
    """Returns an exit status in words: `signal SIGSEGV`, `exit status 3`, `exit status 0xC0000005 (access
    violation)`."""
    if code < 0:
        return f"signal {_signal(-code)}"
    if code < _SEVERE:
        return f"exit status {code}"
    return f"exit status 0x{code:08X}" + (f" ({_STATUSES[code]})" if code in _STATUSES else "")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # such as a real-time signal
        return str(number)
