"""A plain layout: items in rows by their longest way from the start. It is the fallback for the one that a library
makes, and has more crossings."""

from __future__ import annotations

from onnxsmith.viewer.layout.graph import Graph, Layout
from onnxsmith.viewer.layout.longest_paths import from_end

_APART = 1.2


def in_rows(graph: Graph) -> Layout:
    """Lays out a graph. Each row is in the order of the places that its items read from; a bend stands between the
    neighbours that leave it the shortest way."""
    rows = from_end(graph.count, graph.edges)
    read: list[list[int]] = [[] for _ in range(graph.count)]
    for one, other in graph.edges:
        read[other].append(one)
    levels: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
    for item, row in enumerate(rows):
        levels[row].append(item)
    x = [0.0] * graph.count
    for level in levels:
        wanted = {item: sum(x[one] for one in read[item]) / len(read[item]) if read[item] else 0.0 for item in level}
        ordered = sorted(level, key=lambda item: (wanted[item], item))
        middle = sum(wanted.values()) / len(level)
        start = middle - _APART * (len(level) - 1) / 2
        for place, item in enumerate(ordered):
            x[item] = start + _APART * place
    left = min(x, default=0.0)
    x = [round(place - left, 3) for place in x]
    ends = [(min(x[item] for item in level), max(x[item] for item in level)) for level in levels]
    bends = {}
    for one, other in graph.edges:
        length, slope = rows[other] - rows[one], (x[other] - x[one]) / (rows[other] - rows[one])
        bends[one, other] = [_between(x[one] + slope * step, ends[rows[one] + step]) for step in range(1, length)]
    return Layout(rows, x, bends)


def _between(wanted: float, ends: tuple[float, float]) -> float:
    """The place nearest to `wanted` that is between two items of a row, whose items are evenly spaced."""
    first, last = ends
    half = _APART / 2
    if wanted < first - half or wanted > last + half:
        return round(wanted, 3)
    gaps = round((last - first) / _APART) + 1
    nearest = min(max(round((wanted - first + half) / _APART), 0), gaps)
    return round(first - half + _APART * nearest, 3)
