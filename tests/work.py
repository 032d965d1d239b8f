"""Counts the work of a call, which is the same on every machine; its time is not."""

from __future__ import annotations

import sys
from collections.abc import Callable


def calls(work: Callable[..., object], *arguments: object, **options: object) -> int:
    """Returns how many functions of Python are called while `work` runs in this thread with these arguments."""
    count = 0

    def called(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work(*arguments, **options)
    finally:
        sys.setprofile(before)
    return count


def grows_linearly(work: Callable[[int], object], size: int) -> bool:
    """Returns whether work on twice the size takes up to 2.3 times the calls. A square takes four times as many."""
    work(size)  # what is imported and cached at the first time does not count
    return calls(work, 2 * size) <= 2.3 * calls(work, size)
