"""Describes this machine, and measures how busy its processors are."""

from __future__ import annotations

import os
import platform
import re
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_CONTROL_GROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Counters:
    """Seconds of all processors together since the machine started. `busy` were used by any process, `stolen` were
    taken by the host of a virtual machine for others."""

    busy: float
    stolen: float


class Machine(ABC):
    """Facts about the machine."""

    @abstractmethod
    def processor(self) -> str:
        """Returns the processor's name; "" if unknown."""

    @abstractmethod
    def counters(self) -> Counters | None:
        """Returns the processors' counters; None if unknown."""

    def cores(self) -> int:
        """Returns the number of processors that this process may use."""
        with suppress(AttributeError):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def memory(self) -> int | None:
        """Returns the bytes of memory of the machine, within this container; None if unknown."""
        with suppress(AttributeError, OSError, ValueError):
            total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            with suppress(OSError, ValueError):  # a control group without a limit says "max"
                total = min(total, int((_CONTROL_GROUP / "memory.max").read_text(encoding="ascii")))
            return total
        return None

    def memory_kills(self) -> int | None:
        """Returns how many processes the system ended for lack of memory since it started; None if unknown."""
        return None

    def load(self) -> float | None:
        """Returns the number of processes that ran or waited for a processor, averaged over the last minute; None if
        unknown."""
        with suppress(OSError, AttributeError):
            return os.getloadavg()[0]
        return None


class ProcFiles(Machine):
    """Linux: files of `/proc` (proc(5))."""

    def processor(self) -> str:
        with suppress(OSError):
            text = (_PROC / "cpuinfo").read_text(encoding="utf-8", errors="replace")
            if found := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
                return found[1].strip()
        return platform.machine()

    def counters(self) -> Counters | None:
        with suppress(OSError, ValueError, IndexError):
            fields = [int(word) for word in (_PROC / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]]
            user, nice, system, _idle, _wait, irq, softirq, stolen = fields[:8]
            tick = os.sysconf("SC_CLK_TCK")
            return Counters((user + nice + system + irq + softirq) / tick, stolen / tick)
        return None

    def memory_kills(self) -> int | None:
        for file in (_CONTROL_GROUP / "memory.events", _PROC / "vmstat"):  # the container, else the whole machine
            with suppress(OSError):
                if found := re.search(r"^oom_kill (\d+)$", file.read_text(encoding="ascii"), re.MULTILINE):
                    return int(found[1])
        return None


class Unknown(Machine):
    """Other systems: reading the counters would need a library."""

    def processor(self) -> str:
        return platform.processor() or platform.machine()

    def counters(self) -> Counters | None:
        return None


HERE: Machine = ProcFiles() if (_PROC / "stat").exists() and hasattr(os, "sysconf") else Unknown()
