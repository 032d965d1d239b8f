"""Runs short calls of a torch module on one thread.

Threads of OpenMP wait for each other at the end of each operator, and compute nothing while they wait. If other
processes use the cores too, a call of 50 ms takes 50 times its processor time so. A short call gains nothing from
several threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.parameter import is_lazy

REACHES = ()

_SHORT = 0.5
"""Limits the seconds of a short call. A choice: a verification makes about ten calls."""
_SMALL = 1 << 28
"""Limits the bytes of weights of a module whose first call may be short. A choice: 256 MiB, read once in 50 ms."""


class Threads:
    """Chooses the number of threads for calls of `module`: one for a small module, until a call was not short. Then
    calls run on as many threads as torch is set to."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._may_be_short = _weight(module) <= _SMALL

    @contextmanager
    def chosen(self) -> Iterator[None]:
        """Sets the number of threads inside the block."""
        usual = torch.get_num_threads()
        if not self._may_be_short or usual == 1:
            yield
            return
        torch.set_num_threads(1)
        begun = time.monotonic()
        try:
            yield
        finally:
            torch.set_num_threads(usual)
            self._may_be_short = time.monotonic() - begun <= _SHORT


def _weight(module: torch.nn.Module) -> int:
    """Returns the bytes of the weights that exist; a lazy module makes its weights in the first call."""
    held = (one for one in (*module.parameters(), *module.buffers()) if not is_lazy(one))
    return sum(one.numel() * one.element_size() for one in held)
