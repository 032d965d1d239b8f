"""Makes files that belong to a living process, so that files of dead processes can be recognised."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType

_fcntl: ModuleType | None
try:
    import fcntl as _fcntl
except ImportError:  # Windows
    _fcntl = None


class Locks(ABC):
    """Makes files that a process holds, and finds out whether any process holds a file."""

    @abstractmethod
    def hold(self, file: Path) -> int | None:
        """Makes `file` and holds it until the returned descriptor is closed or the process ends. Returns None, and
        makes no file, if the file system has no locks."""

    @abstractmethod
    def taken_over(self, file: Path) -> AbstractContextManager[None]:
        """Holds `file`, which nobody held, while the block runs.

        Raises:
            OSError: the file does not exist, or a process holds it.
        """


class FileLocks(Locks):
    """POSIX: `flock` on the file. It also works between machines if the file system supports that."""

    def hold(self, file: Path) -> int | None:
        assert _fcntl is not None
        unnamed = file.with_name(f"{file.name}.new")  # the name comes after the lock: nobody sees the file unlocked
        lock = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            _fcntl.flock(lock, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            os.rename(unnamed, file)  # noqa: PTH104 — the pair of os.open
        except OSError:
            os.close(lock)
            unnamed.unlink(missing_ok=True)
            return None
        return lock

    @contextmanager
    def taken_over(self, file: Path) -> Iterator[None]:
        assert _fcntl is not None
        lock = os.open(file, os.O_RDWR)
        try:
            _fcntl.flock(lock, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            yield
        finally:
            os.close(lock)


class OpenFiles(Locks):
    """Windows: a file that Python has open cannot be removed; a file that can be removed belongs to nobody."""

    def hold(self, file: Path) -> int | None:
        try:
            return os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        except OSError:
            return None

    @contextmanager
    def taken_over(self, file: Path) -> Iterator[None]:
        file.unlink()
        yield


HERE: Locks = OpenFiles() if _fcntl is None else FileLocks()
