"""The longest ways through a graph without cycles."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.viewer.layout.graph import Edge


def from_end(count: int, edges: Sequence[Edge]) -> list[int]:
    """Returns the rows of the items if each is as far down as its readers allow: the row of an item is just above the
    uppermost of them, and items without readers are in the last row. Edges lead to higher numbers."""
    below = [0] * count
    for one, other in sorted(edges, reverse=True):
        below[one] = max(below[one], below[other] + 1)
    last = max(below, default=0)
    return [last - rows for rows in below]


def components(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Returns the items that are connected, component by component, in the order of their first items."""
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
