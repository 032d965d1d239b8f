"""The graph that is laid out, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Edge = tuple[int, int]


@dataclass(frozen=True)
class Graph:
    """Items by number, and edges between them, each once. No edge leads to a lower number, so that there are no
    cycles. Two graphs that are equal have equal layouts."""

    count: int
    edges: tuple[Edge, ...]


@dataclass(eq=False)
class Layout:
    """The row of each item, counted from the top, the x of its middle, and the x of each edge in the rows between its
    ends. Items of a row are at least `arrange.APART` apart."""

    rows: list[int]
    x: list[float]
    bends: dict[Edge, list[float]] = field(default_factory=dict)

    def problem(self, edges: Sequence[Edge]) -> str:
        """Says what is wrong with the layout; "" if nothing is."""
        for one, other in edges:
            length = self.rows[other] - self.rows[one]
            if length < 1:
                return f"the edge {one} → {other} does not point down"
            if len(self.bends.get((one, other), ())) != length - 1:
                return f"the edge {one} → {other} crosses {length - 1} rows with another number of bends"
        return ""
