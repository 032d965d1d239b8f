"""Chooses which edges become stubs: a name beside the reader, in the place of a long line.

A long edge costs a bend in every row that it crosses, and a picture full of long lines is not legible."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.viewer.layout.graph import Edge
from onnxsmith.viewer.layout.longest_paths import from_end

_LONGEST = 24
"""Rows that a drawn edge crosses at most. A choice: a residual connection around attention crosses 10 to 20."""
_MOST_READERS = 8
"""Readers of a value up to which all its edges are drawn; of others, only those into the next row. A choice."""
_BENDS_PER_ITEM = 2
"""Bends for each item of a room. Measured with benchmarks/view.py: the time of the layout follows the number of bends,
and 20,000 items with 40,000 bends take a second."""
_FREE_BENDS = 400
"""Bends that any room may have. A choice: rooms of this size take milliseconds."""


def chosen(count: int, edges: Sequence[tuple[int, int, int]]) -> set[tuple[int, int, int]]:
    """Returns the edges that become stubs. An edge is item, item, value, and leads to an item of a higher number."""
    drawn = [(one, other) for one, other, _ in edges]
    rows = from_end(count, drawn)
    readers: dict[int, set[int]] = {}
    for _, other, value in edges:
        readers.setdefault(value, set()).add(other)
    length = {(one, other): rows[other] - rows[one] for one, other in drawn}
    longest = _affordable(count, list(length.values()))
    return {
        (one, other, value)
        for one, other, value in edges
        if length[one, other] > longest or (len(readers[value]) > _MOST_READERS and length[one, other] > 1)
    }


def _affordable(count: int, lengths: Sequence[int]) -> int:
    """The length of the longest edge that is drawn, so that all bends together are not too many."""
    allowed = _FREE_BENDS + _BENDS_PER_ITEM * count
    spent = 0
    for length in sorted(lengths):
        spent += length - 1
        if spent > allowed:
            return min(_LONGEST, length - 1)
    return _LONGEST


def plain(edges: Sequence[tuple[int, int, int]]) -> tuple[Edge, ...]:
    """Returns each pair of connected items once, in order."""
    return tuple(sorted({(one, other) for one, other, _ in edges}))
