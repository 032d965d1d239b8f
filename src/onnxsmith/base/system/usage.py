"""How much memory and processor time a process uses, by its number."""

from __future__ import annotations

import os
import re
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path

_PROC = Path("/proc")


class Usage(ABC):
    """What the operating system counts of a process."""

    @abstractmethod
    def resident(self, process: int) -> int | None:
        """Bytes of memory that it holds, None where nobody says."""

    @abstractmethod
    def processor_seconds(self, process: int) -> float | None:
        """Processor time that it has used, None where nobody says: a machine that is busy with others is no reason to
        take a call for endless."""

    def peak(self, process: int) -> int | None:
        """The most bytes of memory that it ever held, None where nobody says."""
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
    """Windows, where Python has no way to ask."""

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
