"""Makes a forked process usable. A fork has only the thread that forked it: what another thread had begun stays
unfinished there, and a lock that it held is never released."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threading import Lock, RLock

_locks: list[Lock | RLock] = []
_taken: list[Lock | RLock] = []
"""Holds the locks that the fork which happens now has taken."""


def wait_for(lock: Lock | RLock, *, outermost: bool = False) -> None:
    """Makes each fork of this process wait until no other thread holds `lock`. While a thread holds the `outermost`
    lock, it may take the others; while it holds one of the others, it takes none."""
    _locks.insert(0 if outermost else len(_locks), lock)


def in_child(action: Callable[[], object]) -> None:
    """Makes each forked process begin with `action`."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


def _take() -> None:
    locks = list(_locks)
    for lock in locks:
        lock.acquire()
    _taken[:] = locks


def _release() -> None:
    for lock in reversed(_taken):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take, after_in_parent=_release, after_in_child=_release)
