"""Bytes of a file, brought to where they outlive a loss of power."""

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
    """Waits until the disk has a file."""

    @abstractmethod
    def flush(self, file: Path) -> None:
        """Returns once what was written to `file` is on the disk."""


class Synced(Disk):
    """POSIX: `fsync`."""

    def flush(self, file: Path) -> None:
        with file.open("rb") as handle:
            os.fsync(handle.fileno())


class SyncedForWriting(Disk):
    """Windows flushes a handle that may write, and refuses others."""

    def flush(self, file: Path) -> None:
        with file.open("r+b") as handle:
            os.fsync(handle.fileno())


class FullySynced(Disk):
    """macOS: `fsync` leaves the bytes in the drive's cache, `F_FULLFSYNC` does not; some disks do not know it."""

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
