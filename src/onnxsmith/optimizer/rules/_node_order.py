"""Compares the positions of nodes in their graph, because a replacement must go after its inputs and before its
readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx_ir as ir

_KEPT = "onnxsmith.order"
_COUNT = "onnxsmith.order.insertions"
_LAST = float("inf")
"""Ends a node's place. A node that is inserted before it later has a number instead, which is smaller."""

Place = tuple[float, ...]
"""Sorts nodes: places compare like the positions of the nodes in the graph."""


def gap(before: Iterable[ir.Node], after: Iterable[ir.Node]) -> ir.Node | None:
    """Returns the first of the nodes `after` if all nodes of `before` come before it. Returns None otherwise, and if
    the nodes are not all in one graph. `after` must not be empty."""
    makers, readers = list(before), list(after)
    if len({node.graph for node in (*makers, *readers)}) != 1:
        return None
    order = _order((*makers, *readers))
    first = min(readers, key=order.__getitem__)
    return first if all(order[node] < order[first] for node in makers) else None


def last(nodes: Iterable[ir.Node]) -> ir.Node:
    """Returns the last node. All nodes must be in one graph."""
    return first_to_last(nodes)[-1]


def first(nodes: Iterable[ir.Node]) -> ir.Node:
    """Returns the first node. All nodes must be in one graph."""
    return first_to_last(nodes)[0]


def first_to_last(nodes: Iterable[ir.Node]) -> list[ir.Node]:
    """Returns the nodes in the order of the graph. All nodes must be in one graph."""
    every = list(nodes)
    return sorted(every, key=_order(every).__getitem__)


def inserted(nodes: Iterable[ir.Node], before: ir.Node) -> None:
    """Notes the places of new nodes that were inserted before a node, in order, so that the graph need not be counted
    again."""
    graph = before.graph
    order: dict[ir.Node, Place] = {} if graph is None else graph.meta.get(_KEPT, {})
    if graph is None or before not in order:
        return
    count: int = graph.meta.get(_COUNT, 0)
    graph.meta[_COUNT] = count + 1
    for index, node in enumerate(nodes):
        order[node] = (*order[before][:-1], count, index, _LAST)


def _order(nodes: Sequence[ir.Node]) -> Mapping[ir.Node, Place]:
    """Returns places of at least these nodes, which grow along the graph.

    Nodes keep their order when others are added or removed. So the nodes are counted again only for a node that was
    added since the last count and was not noted by `inserted`.
    """
    graph = nodes[0].graph
    assert graph is not None
    order: dict[ir.Node, Place] = graph.meta.get(_KEPT, {})
    if any(node not in order for node in nodes):
        order = {node: (place, _LAST) for place, node in enumerate(graph)}
        graph.meta[_KEPT] = order
    return order
