"""Lays out graphs of any shape: connected parts by a library, single items by themselves, and all of them packed."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.viewer.layout import sugiyama
from onnxsmith.viewer.layout.graph import Graph, Layout
from onnxsmith.viewer.layout.longest_paths import components
from onnxsmith.viewer.layout.packing import packed
from onnxsmith.viewer.layout.rows import in_rows

APART = 1.2
"""The least distance of neighbours in a row; the widest item is 1 wide."""


def arranged(graphs: Sequence[Graph]) -> tuple[dict[Graph, Layout], list[str]]:
    """Returns a layout of each graph, equal ones once, and notes on those that the library could not lay out."""
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
    """The connected parts of a graph: the items of each, and the part with numbers of its own."""
    groups = components(graph.count, graph.edges)
    place: dict[int, tuple[int, int]] = {}
    for number, items in enumerate(groups):
        place.update((item, (number, at)) for at, item in enumerate(items))
    edges: list[list[tuple[int, int]]] = [[] for _ in groups]
    for one, other in graph.edges:
        number, at = place[one]
        edges[number].append((at, place[other][1]))
    return [(items, Graph(len(items), tuple(own))) for items, own in zip(groups, edges, strict=True)]
