"""Makes files that belong to a living process, so that files of dead processes can be recognised. Lets processes wait
for each other."""

from __future__ import annotations

import contextlib
import errno
import os
import time
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

_PAUSE = 0.05
"""Sets the seconds between two attempts on a system that cannot wait for a lock. A choice."""


class Locks(ABC):
    """Makes files that a process holds, and finds out whether any process holds a file."""

    @abstractmethod
    def hold(self, file: Path) -> int | None:
        """Makes `file` and holds it until `release`, or until the process ends. A process that it forks does not hold
        the file. Returns None if the file system has no locks.

        Raises:
            FileNotFoundError: another process removed the folder meanwhile.
        """

    def remove_unheld(self, file: Path) -> None:  # noqa: B027 — only POSIX makes the file before it is held
        """Removes what a process left that ended during `hold`, before it held `file`. Raises OSError if it lives."""

    def release(self, lock: int) -> None:
        """Gives back what `hold` returned."""
        os.close(lock)

    @abstractmethod
    def taken_over(self, file: Path) -> AbstractContextManager[None]:
        """Holds `file`, which nobody held, while the block runs.

        Raises:
            OSError: the file does not exist, or a process holds it.
        """

    @abstractmethod
    def waiting(self, file: Path) -> AbstractContextManager[None]:
        """Waits until no other process or thread holds `file`, and holds it while the block runs. The file exists for
        that time only. If the file system has no locks, the block runs without one.

        Raises:
            OSError: the file cannot be made.
        """


_held: set[int] = set()
"""Holds the descriptors of the files that this process holds."""


def _after_fork() -> None:
    """Closes the locks of the parent in a forked process: a file is free when its owner has ended, whoever it forked.
    The parent still holds them."""
    for lock in _held:
        with contextlib.suppress(OSError):
            os.close(lock)
    _held.clear()


if _fcntl is not None:
    os.register_at_fork(after_in_child=_after_fork)


class FileLocks(Locks):
    """POSIX: `flock` on the file. It also works between machines if the file system supports that."""

    def hold(self, file: Path) -> int | None:
        assert _fcntl is not None
        unnamed = file.with_name(f"{file.name}.new")  # the name comes after the lock: nobody sees the file unlocked
        lock = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            _fcntl.flock(lock, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            os.rename(unnamed, file)  # noqa: PTH104 — the pair of os.open
        except (BlockingIOError, FileNotFoundError) as error:
            os.close(lock)
            raise FileNotFoundError(errno.ENOENT, "another process removes the folder", str(file)) from error
        except OSError:  # no locks here; the file stays, so that nobody takes the folder for an empty one
            os.close(lock)
            return None
        _held.add(lock)
        return lock

    def remove_unheld(self, file: Path) -> None:
        unnamed = file.with_name(f"{file.name}.new")
        if unnamed.exists():
            with self.taken_over(unnamed):
                unnamed.unlink()

    def release(self, lock: int) -> None:
        _held.discard(lock)
        os.close(lock)

    @contextmanager
    def taken_over(self, file: Path) -> Iterator[None]:
        assert _fcntl is not None
        lock = os.open(file, os.O_RDWR | os.O_NOFOLLOW)
        try:
            _fcntl.flock(lock, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            yield
        finally:
            os.close(lock)

    @contextmanager
    def waiting(self, file: Path) -> Iterator[None]:
        lock, owner = _waited_for(file), os.getpid()
        _held.add(lock)
        try:
            yield
        finally:
            if os.getpid() == owner:  # a fork may have another file under the number of this lock
                file.unlink(missing_ok=True)  # while it is held: whoever waits sees that the file is another
                self.release(lock)


def _waited_for(file: Path) -> int:
    assert _fcntl is not None
    while True:
        lock = os.open(file, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            with contextlib.suppress(OSError):  # the file system has no locks
                _fcntl.flock(lock, _fcntl.LOCK_EX)
            if _is_named(lock, file):
                return lock
        except BaseException:  # Ctrl-C while it waits
            os.close(lock)
            raise
        os.close(lock)


def _is_named(lock: int, file: Path) -> bool:
    """Whether the open file still has its name: the process that held it before has removed it otherwise."""
    try:
        return os.path.samestat(os.fstat(lock), file.stat())
    except FileNotFoundError:
        return False


class OpenFiles(Locks):
    """Windows: a file that Python has open cannot be removed; a file that can be removed belongs to nobody."""

    def hold(self, file: Path) -> int | None:
        try:
            return os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        except FileNotFoundError:
            raise
        except OSError:
            return None

    @contextmanager
    def taken_over(self, file: Path) -> Iterator[None]:
        file.unlink()
        yield

    @contextmanager
    def waiting(self, file: Path) -> Iterator[None]:
        lock: int | None = None
        while lock is None:
            try:
                lock = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
            except FileExistsError:
                with contextlib.suppress(OSError):
                    file.unlink()  # of a process that has ended
                time.sleep(_PAUSE)
        try:
            yield
        finally:
            os.close(lock)
            file.unlink(missing_ok=True)


HERE: Locks = OpenFiles() if _fcntl is None else FileLocks()
