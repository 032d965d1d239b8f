"""Numbers for structures: equal structures of both models get equal numbers."""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum


class Level(IntEnum):
    """How much of a node counts when two nodes are compared.

    EXACT: operator, attributes and values of constants. SHAPED: instead of the values, dtypes and shapes. BARE: the
    operator alone.
    """

    EXACT = 0
    SHAPED = 1
    BARE = 2


class Numbers:
    """Gives each structure a number. A structure is a tuple that may hold the numbers of smaller structures, so that a
    graph of any depth is compared by one number, without the collisions of a hash."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, structure: Hashable) -> int:
        """Returns the number of a structure."""
        return self._known.setdefault(structure, len(self._known))

    def fresh(self) -> int:
        """Returns a number that no structure has."""
        return self.of(("fresh", len(self._known)))
