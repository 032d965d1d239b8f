"""Pauses Python's garbage collector while a large graph is built or changed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from onnxsmith.base.system import forks

_LOCK = threading.Lock()
_holding: list[int] = []
"""Holds the thread of each block that pauses the collector now."""
_was_enabled = True


@contextmanager
def no_collection() -> Iterator[None]:
    """Pauses the collector until the block ends. A graph is one large live cycle: a full collection walks all of it and
    frees nothing, and a growing graph triggers more collections."""
    global _was_enabled
    thread = threading.get_ident()
    with _LOCK:
        if not _holding:
            _was_enabled = gc.isenabled()
        _holding.append(thread)
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            _holding.remove(thread)
            _resume()


def _resume() -> None:
    if _was_enabled and not _holding:
        gc.enable()


def _after_fork() -> None:
    """Ends the blocks of the threads that a forked process does not have: it would never collect again."""
    if _holding:
        _holding[:] = [thread for thread in _holding if thread == threading.get_ident()]
        _resume()


forks.wait_for(_LOCK)
forks.in_child(_after_fork)
