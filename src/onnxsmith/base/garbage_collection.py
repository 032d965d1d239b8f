"""Pauses Python's garbage collector while a large graph is built or changed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_holding = 0
"""The number of blocks, in all threads, that pause the collector now."""
_was_enabled = True


@contextmanager
def no_collection() -> Iterator[None]:
    """Pauses the collector until the block ends. A graph is one large live cycle: a full collection walks all of it and
    frees nothing, and a growing graph triggers more collections."""
    global _holding, _was_enabled
    with _LOCK:
        if not _holding:
            _was_enabled = gc.isenabled()
        _holding += 1
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            _holding -= 1
            if _was_enabled and not _holding:
                gc.enable()
