"""Finds the names that somebody may have meant who wrote another one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 300
"""Limits the characters of the names. difflib looks at each character of a name before it compares any, which takes
seconds for a name of megabytes. A choice: nobody mistypes a name of this length."""


def near_names(name: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> list[str]:
    """Returns at most `most` known names that are as similar as `cutoff` demands (difflib's ratio), the best first."""
    if len(name) > LONGEST:
        return []
    return difflib.get_close_matches(name, [one for one in known if len(one) <= LONGEST], most, cutoff)  # noqa: TID251
