"""Puts the nodes of a broken graph in an order in which they could run, and opens its cycles."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from onnxsmith.graph.structure import captures
from onnxsmith.graph.structure.walk import node_label

OPENED = "onnxsmith.opened"
"""Is the key of a value's `meta` for a text about the cycle that was opened at this value."""
Early = tuple[ir.Node, ir.Node]
"""Holds a node, and the later node whose result it reads."""


def in_order(graph: ir.Graph) -> tuple[list[Early], list[list[ir.Node]]]:
    """Sorts a graph in place and opens its cycles: the first node of a cycle, in the order of the file, reads a new
    value without a producer. Returns the nodes that stood too early, and the cycles."""
    nodes = list(graph)
    place = {node: at for at, node in enumerate(nodes)}
    needs = [_makers(node, place) for node in nodes]
    early = [(nodes[at], nodes[max(own)]) for at, own in enumerate(needs) if own and max(own) >= at]
    if not early:
        return [], []
    readers: dict[int, list[int]] = {}
    for at, own in enumerate(needs):
        for one in own:
            readers.setdefault(one, []).append(at)
    left, order, cycles = set(place.values()), [], []
    ready = [at for at, own in enumerate(needs) if not own]
    while left:
        if not ready:
            cycle = _cycle(needs, left)
            cycles.append([nodes[at] for at in cycle])
            first, maker = cycle[0], cycle[-1]
            _open(nodes[first], nodes[maker])
            needs[first].discard(maker)
            readers[maker].remove(first)
            if not needs[first] & left:
                heapq.heappush(ready, first)
            continue
        done = heapq.heappop(ready)
        left.discard(done)
        order.append(done)
        for reader in readers.get(done, ()):
            if reader in left and not needs[reader] & left:
                heapq.heappush(ready, reader)
    graph.remove(nodes)
    graph.extend(nodes[at] for at in order)
    inside = {node for cycle in cycles for node in cycle}
    return [(node, maker) for node, maker in early if node not in inside], cycles


def _makers(node: ir.Node, place: Mapping[ir.Node, int]) -> set[int]:
    """Returns the positions of the nodes in the same graph that a node reads from."""
    makers = (value.producer() for value in captures.reads(node))
    return {place[maker] for maker in makers if maker is not None and maker in place}


def _cycle(needs: Sequence[set[int]], left: set[int]) -> list[int]:
    """Returns a cycle among the nodes `left`, in the direction of the values. The cycle starts with the node that is
    first in the file."""
    at = min(left)
    seen: dict[int, int] = {}
    while at not in seen:
        seen[at] = len(seen)
        at = min(needs[at] & left)
    found = list(seen)[seen[at] :][::-1]
    start = found.index(min(found))
    return [*found[start:], *found[:start]]


def _open(reader: ir.Node, maker: ir.Node) -> None:
    opened = {value: ir.Value(name=value.name) for value in maker.outputs}
    for value in opened.values():
        value.meta[OPENED] = f"{node_label(maker)} makes it below"
    captures.read_instead([reader], opened)
