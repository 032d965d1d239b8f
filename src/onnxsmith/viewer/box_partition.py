"""Divides the nodes of a graph into parts, each shown as one box: no two boxes depend on each other.

A module that is left and entered again depends on the nodes between. Such a module becomes two parts, or more if
needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

_STEPS_PER_EDGE = 40
"""Limits the steps of the search for dependencies, for each edge of the graph. After these steps, every re-entered
module becomes a new part, which needs no search. A choice: real models need 2 at most, and the work stays linear."""


@dataclass(eq=False)
class Part:
    """Holds nodes with one key, in the order of the graph. A node without a key is a part of its own."""

    key: Hashable
    nodes: list[int] = field(default_factory=list)


def divided(nodes: Sequence[int], keys: Mapping[int, Hashable | None], sources: Sequence[Sequence[int]]) -> list[Part]:
    """Divides `nodes`, which stand in an order in which they can run. Nodes of one key form one part. Nodes of one key
    form several parts if an outside node depends on an earlier part and feeds a later part. `sources` are the nodes
    that each node reads from; nodes outside `nodes` are ignored. Returns the parts in the order of their first
    nodes."""
    work = _Division(sources)
    for node in nodes:
        work.add(node, keys.get(node))
    return work.parts


class _Division:
    """Keeps an order of the parts in which they can run, as in D. J. Pearce, P. H. J. Kelly, "A dynamic topological
    sort algorithm for directed acyclic graphs" (2006). A node joins a part unless this would close a cycle."""

    def __init__(self, sources: Sequence[Sequence[int]]) -> None:
        self.parts: list[Part] = []
        self._sources = sources
        self._part_of: dict[int, int] = {}
        self._last: dict[Hashable, int] = {}
        self._after: list[set[int]] = []
        self._before: list[set[int]] = []
        self._rank: list[int] = []
        self._budget = 1000

    def add(self, node: int, key: Hashable | None) -> None:
        read = {self._part_of[source] for source in self._sources[node] if source in self._part_of}
        self._budget += _STEPS_PER_EDGE * (1 + len(read))
        part = self._last.get(key, -1) if key is not None else -1
        if part < 0 or not self._joins(part, read - {part}):
            part = len(self.parts)
            self.parts.append(Part(key))
            self._after.append(set())
            self._before.append(set())
            self._rank.append(part)
            if key is not None:
                self._last[key] = part
            for other in read:
                self._link(other, part)
        self.parts[part].nodes.append(node)
        self._part_of[node] = part

    def _link(self, one: int, other: int) -> None:
        self._after[one].add(other)
        self._before[other].add(one)

    def _joins(self, part: int, read: set[int]) -> bool:
        """Lets a part read from the parts `read`, if none of these depends on the part. Returns whether the part now
        reads from them."""
        for other in sorted(read - self._before[part], key=self._rank.__getitem__):
            # The order already has `other` before the part: no path can lead from the part to it.
            if self._rank[other] < self._rank[part]:
                continue
            # A path from the part to `other` would close a cycle; else both sides change places in the order.
            behind = self._reached(part, self._after, 0, self._rank[other])
            if behind is None or other in behind:
                return False
            ahead = self._reached(other, self._before, self._rank[part], len(self.parts))
            if ahead is None:
                return False
            self._reorder([*sorted(ahead, key=self._rank.__getitem__), *sorted(behind, key=self._rank.__getitem__)])
        for other in read:
            self._link(other, part)
        return True

    def _reached(self, start: int, ways: Sequence[set[int]], least: int, most: int) -> set[int] | None:
        """Returns the parts that can be reached from `start`, at ranks from `least` to `most`; None if the budget of
        steps is spent."""
        found, waiting = {start}, [start]
        while waiting:
            for one in ways[waiting.pop()]:
                self._budget -= 1
                if one not in found and least <= self._rank[one] <= most:
                    found.add(one)
                    waiting.append(one)
            if self._budget < 0:
                return None
        return found

    def _reorder(self, wanted: Sequence[int]) -> None:
        ranks = sorted(self._rank[one] for one in wanted)
        for one, rank in zip(wanted, ranks, strict=True):
            self._rank[one] = rank
