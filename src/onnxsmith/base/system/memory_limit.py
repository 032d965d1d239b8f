"""A limit on the memory of this process, held by the operating system."""

from __future__ import annotations

import contextlib
import os
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType

_resource: ModuleType | None
try:
    import resource as _resource
except ImportError:  # Windows
    _resource = None

_OF_FREE = 0.75
"""Share of the memory that is free now which one more process may take."""


class MemoryLimit(ABC):
    """Keeps this process from taking more memory than it may."""

    @abstractmethod
    def hold(self, limit: int) -> int:
        """Keeps this process within `limit` bytes, 0 for no limit, and within what the machine has to spare. Gives the
        limit that holds, 0 for none."""

    def hold_child(self, pid: int, limit: int) -> None:  # noqa: B027 — most systems hold nothing
        """Keeps a process that this one started within `limit` bytes, 0 for no limit."""


class DataLimit(MemoryLimit):
    """Linux counts private writable memory (RLIMIT_DATA): neither files that are mapped, weights say, nor addresses
    that are reserved only. An allocation that goes beyond fails."""

    def hold(self, limit: int) -> int:
        assert _resource is not None
        own, spare = self._own(), self._spare()
        if limit and own is not None and spare is not None:
            limit = min(limit, own + int(_OF_FREE * spare))
        hard = _resource.getrlimit(_resource.RLIMIT_DATA)[1]
        wanted = limit or _resource.RLIM_INFINITY
        if hard != _resource.RLIM_INFINITY:
            wanted = hard if wanted == _resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            _resource.setrlimit(_resource.RLIMIT_DATA, (wanted, hard))
        return limit

    def hold_child(self, pid: int, limit: int) -> None:
        assert _resource is not None
        with contextlib.suppress(OSError, ValueError):
            hard = _resource.prlimit(pid, _resource.RLIMIT_DATA)[1]
            wanted = limit or hard
            if hard != _resource.RLIM_INFINITY:
                wanted = min(wanted, hard)
            _resource.prlimit(pid, _resource.RLIMIT_DATA, (wanted, hard))

    def _own(self) -> int | None:
        """Bytes of private writable memory that this process has; None where `/proc` is not mounted."""
        with contextlib.suppress(OSError):
            return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")
        return None

    def _spare(self) -> int | None:
        """Bytes that can be had without swapping, within this container; None where nobody says."""
        found = []
        with contextlib.suppress(OSError, ValueError):
            lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
            found.append(int(dict(line.split(":", 1) for line in lines)["MemAvailable"].split()[0]) * 1024)
        with contextlib.suppress(OSError, ValueError):  # a control group without a limit says "max"
            group = Path("/sys/fs/cgroup")
            most, taken = ((group / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current"))
            found.append(int(most) - int(taken))
        return max(0, min(found)) if found else None


class NoLimit(MemoryLimit):
    """Elsewhere nothing is held: macOS takes RLIMIT_DATA and does not count what is mapped, Windows has none."""

    def hold(self, limit: int) -> int:
        return 0


HERE: MemoryLimit = DataLimit() if _resource is not None and sys.platform == "linux" else NoLimit()
