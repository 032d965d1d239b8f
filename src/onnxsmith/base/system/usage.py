"""Measures how much memory and processor time a process uses, by process id."""

from __future__ import annotations

import os
import re
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path

_PROC = Path("/proc")


class Usage(ABC):
    """The resources that a process uses, as the operating system counts them."""

    @abstractmethod
    def resident(self, process: int) -> int | None:
        """Returns the bytes of memory that the process holds; None if unknown."""

    @abstractmethod
    def processor_seconds(self, process: int) -> float | None:
        """Returns the processor time that the process has used; None if unknown. Unlike wall time, it tells an endless
        call from one that waits on a busy machine."""

    def peak(self, process: int) -> int | None:
        """Returns the most bytes of memory that the process ever held; None if unknown."""
        return None


class ProcFiles(Usage):
    """Linux: files of `/proc`."""

    def resident(self, process: int) -> int | None:
        try:
            return int(_read(process, "statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return None

    def peak(self, process: int) -> int | None:
        try:
            found = re.search(r"^VmHWM:\s+(\d+) kB", _read(process, "status"), re.MULTILINE)
        except OSError:
            return None
        return int(found[1]) * 1024 if found else None

    def processor_seconds(self, process: int) -> float | None:
        try:
            fields = _read(process, "stat").rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class ProcessStatus(Usage):
    """macOS and other POSIX systems: the program `ps`."""

    def resident(self, process: int) -> int | None:
        said = self._column("rss", process)
        return int(said) * 1024 if said.isdecimal() else None

    def processor_seconds(self, process: int) -> float | None:
        match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)", self._column("time", process))
        if match is None:
            return None
        days, hours, minutes, seconds = match.groups(default="0")
        return ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds)

    def _column(self, name: str, process: int) -> str:
        command = ["ps", "-o", f"{name}=", "-p", str(process)]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.decode("ascii", errors="replace").strip()


class Unknown(Usage):
    """Windows: Python cannot ask."""

    def resident(self, process: int) -> int | None:
        return None

    def processor_seconds(self, process: int) -> float | None:
        return None


def _read(process: int, name: str) -> str:
    return (_PROC / str(process) / name).read_text(encoding="utf-8", errors="replace")


def _here() -> Usage:
    if (_PROC / "self" / "statm").exists() and hasattr(os, "sysconf"):
        return ProcFiles()
    return ProcessStatus() if hasattr(os, "fork") else Unknown()


HERE: Usage = _here()
