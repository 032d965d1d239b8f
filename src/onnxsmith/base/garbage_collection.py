"""Pauses Python's garbage collector while a large graph is built or changed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_holding = 0
"""How many blocks pause the collector now, in all threads."""
_was_enabled = True


@contextmanager
def no_collection() -> Iterator[None]:
    """Pauses the collector until the block ends. A graph is one large live cycle: each full collection walks all of it
    and frees nothing, and a larger graph triggers more collections."""
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
