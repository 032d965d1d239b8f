"""Files that belong to a process for as long as it lives, and that others can tell from those of a dead one."""

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
    """Makes files that their process holds, and asks whether anybody holds one."""

    @abstractmethod
    def hold(self, file: Path) -> int | None:
        """Makes `file`, held until the returned descriptor is closed or the process ends. None, and no file, where the
        file system does not know who holds what."""

    @abstractmethod
    def taken_over(self, file: Path) -> AbstractContextManager[None]:
        """A block that runs while `file`, which nobody held, is this process's.

        Raises:
            OSError: there is no such file, or somebody holds it.
        """


class FileLocks(Locks):
    """POSIX: `flock` on the file, which works from machine to machine too where the file system does."""

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
    """Windows: a file that Python has open cannot be removed, so that one which can be belongs to nobody."""

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
