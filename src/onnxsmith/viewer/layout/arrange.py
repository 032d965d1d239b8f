"""Lays out graphs of any shape. A library lays out connected parts; single items need no library. Then all parts are
packed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnxsmith.viewer.layout import sugiyama
from onnxsmith.viewer.layout.graph import Graph, Layout, components, from_end

APART = 1.2
"""Sets the least distance of neighbours in a row, where the widest item has a width of 1."""


def arranged(graphs: Sequence[Graph]) -> tuple[dict[Graph, Layout], list[str]]:
    """Returns a layout for each distinct graph, and notes on graphs that the library could not lay out."""
    parts = {graph: _parts(graph) for graph in dict.fromkeys(graphs)}
    wanted = list(dict.fromkeys(part for own in parts.values() for _, part in own if part.edges))
    found: dict[Graph, Layout] = {}
    troubles: dict[str, int] = {}
    for part, layout in zip(wanted, sugiyama.layouts(wanted), strict=True):
        if isinstance(layout, str):
            troubles[layout] = troubles.get(layout, 0) + 1
            layout = in_rows(part)
        found[part] = layout
    single = Layout([0], [0.0])
    whole = {
        graph: packed([(items, found.get(part, single)) for items, part in own], graph.count)
        for graph, own in parts.items()
    }
    return whole, [f"{_rooms(count)} drawn in plain rows: {trouble}" for trouble, count in troubles.items()]


def _rooms(count: int) -> str:
    return "a part of the model is" if count == 1 else f"{count:,} parts of the model are"


def _parts(graph: Graph) -> list[tuple[list[int], Graph]]:
    """Returns the connected parts of a graph: the items of each part, and the part as a graph with its own numbers."""
    groups = components(graph.count, graph.edges)
    place: dict[int, tuple[int, int]] = {}
    for number, items in enumerate(groups):
        place.update((item, (number, at)) for at, item in enumerate(items))
    edges: list[list[tuple[int, int]]] = [[] for _ in groups]
    for one, other in graph.edges:
        number, at = place[one]
        edges[number].append((at, place[other][1]))
    return [(items, Graph(len(items), tuple(own))) for items, own in zip(groups, edges, strict=True)]


# Packs the components of a room side by side, and below each other where a line is full.

_APART = 1.2
"""Sets the distance of neighbouring items."""
_SHAPE = 2.0
"""Counts the columns for each row of a full room. A choice: a screen is wider than high, and an item wider than a
row."""


def packed(parts: Sequence[tuple[Sequence[int], Layout]], count: int) -> Layout:
    """Places components in their order. A component holds the numbers of its items, and their layout."""
    sizes = [_size(layout) for _, layout in parts]
    area = sum(width * height for width, height in sizes)
    most = max([math.sqrt(area * _SHAPE), *(width for width, _ in sizes)], default=0.0) + 1e-6
    whole = Layout([0] * count, [0.0] * count)
    x, row, height = 0.0, 0, 0
    for (items, layout), (width, rows) in zip(parts, sizes, strict=True):
        if x and x + width > most:
            x, row, height = 0.0, row + height, 0
        shift = x - _left(layout)
        for item, own, place in zip(items, layout.rows, layout.x, strict=True):
            whole.rows[item], whole.x[item] = row + own, round(place + shift, 3)
        for (one, other), bends in layout.bends.items():
            whole.bends[items[one], items[other]] = [round(bend + shift, 3) for bend in bends]
        x, height = x + width, max(height, rows)
    return whole


def _size(layout: Layout) -> tuple[float, int]:
    bends = [bend for way in layout.bends.values() for bend in way]
    return max([*layout.x, *bends]) - _left(layout) + _APART, max(layout.rows) + 1


def _left(layout: Layout) -> float:
    return min([*layout.x, *(bend for way in layout.bends.values() for bend in way)])


# A plain layout: items in rows by their longest way from the start. It is the fallback for the one that a library
# makes, and has more crossings.


def in_rows(graph: Graph) -> Layout:
    """Lays out a graph. Each row is sorted by the positions that its items read from. A bend is placed between the
    neighbours that give its edge the shortest way."""
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
    """Returns the position nearest to `wanted` that lies between two evenly spaced items of a row."""
    first, last = ends
    half = _APART / 2
    if wanted < first - half or wanted > last + half:
        return round(wanted, 3)
    gaps = round((last - first) / _APART) + 1
    nearest = min(max(round((wanted - first + half) / _APART), 0), gaps)
    return round(first - half + _APART * nearest, 3)
