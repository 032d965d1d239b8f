"""Compares the positions of nodes in their graph: a replacement goes after its inputs and before its readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx_ir as ir

_KEPT = "onnxsmith.order"
_COUNT = "onnxsmith.order.insertions"
_LAST = float("inf")
"""The end of a node's place: what is inserted before the node later has a number there, which is smaller."""

Place = tuple[float, ...]
"""Compares like the nodes stand in the graph."""


def gap(before: Iterable[ir.Node], after: Iterable[ir.Node]) -> ir.Node | None:
    """Returns the first of the nodes `after` if all nodes of `before` come before it, otherwise None; also None if the
    nodes are not all in one graph. `after` must not be empty."""
    makers, readers = list(before), list(after)
    if len({node.graph for node in (*makers, *readers)}) != 1:
        return None
    order = _order((*makers, *readers))
    first = min(readers, key=order.__getitem__)
    return first if all(order[node] < order[first] for node in makers) else None


def last(nodes: Iterable[ir.Node]) -> ir.Node:
    """Returns the last node; all nodes are in one graph."""
    return first_to_last(nodes)[-1]


def first(nodes: Iterable[ir.Node]) -> ir.Node:
    """Returns the first node; all nodes are in one graph."""
    return first_to_last(nodes)[0]


def first_to_last(nodes: Iterable[ir.Node]) -> list[ir.Node]:
    """Returns the nodes, all in one graph, in the order of the graph."""
    every = list(nodes)
    return sorted(every, key=_order(every).__getitem__)


def inserted(nodes: Iterable[ir.Node], before: ir.Node) -> None:
    """Notes that new nodes were inserted before a node, one after the other, so that the graph need not be counted
    again for them."""
    graph = before.graph
    order: dict[ir.Node, Place] = {} if graph is None else graph.meta.get(_KEPT, {})
    if graph is None or before not in order:
        return
    count: int = graph.meta.get(_COUNT, 0)
    graph.meta[_COUNT] = count + 1
    for index, node in enumerate(nodes):
        order[node] = (*order[before][:-1], count, index, _LAST)


def _order(nodes: Sequence[ir.Node]) -> Mapping[ir.Node, Place]:
    """Places that grow down the graph, for these nodes at least.

    Nodes keep their order when others come and go, so it is counted again only where one is asked for that was not
    there when it was counted last, and that was not noted by `inserted`.
    """
    graph = nodes[0].graph
    assert graph is not None
    order: dict[ir.Node, Place] = graph.meta.get(_KEPT, {})
    if any(node not in order for node in nodes):
        order = {node: (place, _LAST) for place, node in enumerate(graph)}
        graph.meta[_KEPT] = order
    return order
