"""Defines the graph to lay out, and the layout of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Edge = tuple[int, int]


@dataclass(frozen=True)
class Graph:
    """Holds items by number, and the edges between them, each once. No edge leads to a lower number, so there are no
    cycles. Equal graphs have equal layouts."""

    count: int
    edges: tuple[Edge, ...]


@dataclass(eq=False)
class Layout:
    """Holds the row of each item, counted from the top; the x of its middle; and the x of each edge in the rows between
    its ends. Items of a row are at least `arrange.APART` apart."""

    rows: list[int]
    x: list[float]
    bends: dict[Edge, list[float]] = field(default_factory=dict)

    def problem(self, edges: Sequence[Edge]) -> str:
        """Says what is wrong with the layout; "" if it is correct."""
        for one, other in edges:
            length = self.rows[other] - self.rows[one]
            if length < 1:
                return f"the edge {one} → {other} does not point down"
            if len(self.bends.get((one, other), ())) != length - 1:
                return f"the edge {one} → {other} crosses {length - 1} rows with another number of bends"
        return ""


# The longest ways through a graph without cycles.


def from_end(count: int, edges: Sequence[Edge]) -> list[int]:
    """Returns the row of each item, as far down as its readers allow: directly above its uppermost reader, or in the
    last row if it has no readers. Edges lead to higher numbers."""
    below = [0] * count
    for one, other in sorted(edges, reverse=True):
        below[one] = max(below[one], below[other] + 1)
    last = max(below, default=0)
    return [last - rows for rows in below]


def components(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Returns the connected components, each as a list of items, in the order of their first items."""
    parent = list(range(count))

    def root(item: int) -> int:
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for one, other in edges:
        first, second = root(one), root(other)
        parent[max(first, second)] = min(first, second)
    found: dict[int, list[int]] = {}
    for item in range(count):
        found.setdefault(root(item), []).append(item)
    return list(found.values())
