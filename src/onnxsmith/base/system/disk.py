"""Flushes files to the disk, so that they survive a loss of power."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType

_fcntl: ModuleType | None
try:
    import fcntl as _fcntl
except ImportError:  # Windows
    _fcntl = None


class Disk(ABC):
    """Waits until a file is on the disk."""

    @abstractmethod
    def flush(self, file: Path) -> None:
        """Returns once all bytes written to `file` are on the disk."""


class Synced(Disk):
    """POSIX: `fsync`."""

    def flush(self, file: Path) -> None:
        with file.open("rb") as handle:
            os.fsync(handle.fileno())


class SyncedForWriting(Disk):
    """Windows flushes only a handle that may write."""

    def flush(self, file: Path) -> None:
        with file.open("r+b") as handle:
            os.fsync(handle.fileno())


class FullySynced(Disk):
    """macOS: `fsync` leaves the bytes in the drive's cache, `F_FULLFSYNC` does not; but some disks lack
    `F_FULLFSYNC`."""

    def flush(self, file: Path) -> None:
        assert _fcntl is not None
        with file.open("rb") as handle:
            with contextlib.suppress(OSError):
                _fcntl.fcntl(handle.fileno(), _fcntl.F_FULLFSYNC)
                return
            os.fsync(handle.fileno())


def _here() -> Disk:
    if _fcntl is None:
        return SyncedForWriting()
    return FullySynced() if hasattr(_fcntl, "F_FULLFSYNC") else Synced()


HERE: Disk = _here()
