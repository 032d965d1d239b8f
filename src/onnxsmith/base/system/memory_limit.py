"""Limits the memory of a process by the operating system."""

from __future__ import annotations

import contextlib
import os
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType
from typing import ClassVar

_resource: ModuleType | None
try:
    import resource as _resource
except ImportError:  # Windows
    _resource = None

_OF_FREE = 0.75
"""Share of the free memory that one more process may take."""


_ADDRESSES, _PRIVATE = 0, 5
"""Columns of `/proc/self/statm`: all addresses of a process, and its private writable memory (proc(5))."""


class MemoryLimit(ABC):
    """Keeps processes from taking more memory than they may."""

    missing: ClassVar[str] = ""
    """Says that the system sets no limit; "" if it does."""

    @abstractmethod
    def hold(self, limit: int) -> int:
        """Limits this process to `limit` bytes (0: no limit), and to a share of the free memory. Returns the limit in
        force, 0 for none."""

    def most(self) -> int | None:
        """Returns the bytes that this process may take now: what it has, and its `room`. Returns None if the system
        does not tell, or knows no limit."""
        return None

    def room(self) -> int | None:
        """Returns the bytes that this process may take in addition: a share of the free memory, within the limits of
        its shell. Returns None if the system does not tell."""
        return None

    def hold_child(self, pid: int, limit: int) -> None:  # noqa: B027 — most systems set no limit
        """Limits a child process to `limit` bytes; 0 for no limit."""


class DataLimit(MemoryLimit):
    """Linux limits private writable memory (RLIMIT_DATA). Mapped files, such as weights, and addresses that are only
    reserved do not count. An allocation beyond the limit fails."""

    def hold(self, limit: int) -> int:
        assert _resource is not None
        most = self.most()
        if limit and most is not None:
            limit = min(limit, most)
        hard = _resource.getrlimit(_resource.RLIMIT_DATA)[1]
        wanted = limit or _resource.RLIM_INFINITY
        if hard != _resource.RLIM_INFINITY:
            wanted = hard if wanted == _resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            _resource.setrlimit(_resource.RLIMIT_DATA, (wanted, hard))
        return limit

    def most(self) -> int | None:
        own, room = self._own(), self.room()
        return None if own is None or room is None else own + room

    def room(self) -> int | None:
        assert _resource is not None
        spare = self._spare()
        found = [] if spare is None else [int(_OF_FREE * spare)]
        limit, taken = _resource.getrlimit(_resource.RLIMIT_AS)[0], self._pages(_ADDRESSES)  # `ulimit -v`
        if limit != _resource.RLIM_INFINITY and taken is not None:
            found.append(max(0, limit - taken))
        return min(found, default=None)

    def hold_child(self, pid: int, limit: int) -> None:
        assert _resource is not None
        with contextlib.suppress(OSError, ValueError):
            hard = _resource.prlimit(pid, _resource.RLIMIT_DATA)[1]
            wanted = limit or hard
            if hard != _resource.RLIM_INFINITY:
                wanted = min(wanted, hard)
            _resource.prlimit(pid, _resource.RLIMIT_DATA, (wanted, hard))

    def _own(self) -> int | None:
        """Returns the bytes of private writable memory of this process; None if `/proc` is not mounted."""
        return self._pages(_PRIVATE)

    def _pages(self, column: int) -> int | None:
        """Returns the bytes of a column of `/proc/self/statm`; None if `/proc` is not mounted."""
        with contextlib.suppress(OSError):
            return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[column]) * os.sysconf(
                "SC_PAGE_SIZE"
            )
        return None

    def _spare(self) -> int | None:
        """Returns the bytes that can be had without swapping, within this container; None if unknown."""
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
    """Other systems have no limit: macOS accepts RLIMIT_DATA but does not count mapped memory, and Windows has no such
    limit."""

    missing = "this system has no memory limit for processes, so only their time is limited"

    def hold(self, limit: int) -> int:
        return 0


HERE: MemoryLimit = DataLimit() if _resource is not None and sys.platform == "linux" else NoLimit()
