"""Computes attributes when they are first read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

T = TypeVar("T")


class cached_property(functools.cached_property[T]):  # noqa: N801 — in place of the library's
    """An attribute that is computed once for each object.

    Python 3.11 computes it under a lock that all objects of the class share: threads would wait for each other, and a
    process that is forked at this moment would wait for ever. Newer versions have no lock.
    """

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        self.lock = nullcontext()
