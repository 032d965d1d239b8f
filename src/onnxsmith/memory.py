"""Python's search for cycles, held back while a large graph is built or changed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Does not look for cycles until the block ends. A graph is one large cycle that is alive: each full search walks
    all of it and frees nothing, and there are more searches the larger it is."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
