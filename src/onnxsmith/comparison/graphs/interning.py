"""Numbers for structures: structures that are equal, within or across the two models, get the same number."""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum


class Level(IntEnum):
    """How much of a node is compared. EXACT: operator, attributes and values of constants. SHAPED: dtypes and shapes
    instead of the values. BARE: only the operator."""

    EXACT = 0
    SHAPED = 1
    BARE = 2


class Numbers:
    """Gives each structure a number. A structure is a tuple that may contain the numbers of smaller structures. So
    graphs of any depth are compared by one number, without the collisions of a hash."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, structure: Hashable) -> int:
        """Returns the number of a structure."""
        return self._known.setdefault(structure, len(self._known))

    def fresh(self) -> int:
        """Returns a number that no structure has."""
        return self.of(("fresh", len(self._known)))
