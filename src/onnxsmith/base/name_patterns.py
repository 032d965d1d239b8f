"""Matches names with patterns that a user writes, with `*` for any characters."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

LONGEST = 1000
"""Limits the characters of a pattern. `fnmatch` takes quadratic time for a pattern such as `[[[[`; a longer text is
only a name. A choice: the patterns that people write have few characters."""


def fits(name: str, pattern: str) -> bool:
    """Whether the name matches the pattern, or equals it."""
    return name == pattern or (len(pattern) <= LONGEST and fnmatch.fnmatchcase(name, pattern))


def fitting(names: Iterable[str], pattern: str) -> list[str]:
    """Returns the names that match the pattern, or equal it."""
    return [name for name in names if fits(name, pattern)]
