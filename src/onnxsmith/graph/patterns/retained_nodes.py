"""Finds the nodes of a match that stay in use when its results are replaced."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import onnx_ir as ir


def kept(nodes: Sequence[ir.Node], outputs: Collection[ir.Value], graph: ir.Graph | ir.Function) -> tuple[ir.Node, ...]:
    """Returns the nodes that are still needed without the `outputs`. A node is needed if a result of it is a graph
    output, or is read by a needed node or by a node outside the match. A node of an outer graph is always needed.
    `nodes` are in the order of the pattern."""
    inside = dict.fromkeys(nodes)
    found: dict[ir.Node, None] = {}
    for node in reversed(inside):
        if node.graph is not graph or any(
            value.is_graph_output() or any(one not in inside or one in found for one in value.consumers())
            for value in node.outputs
            if value not in outputs
        ):
            found[node] = None
    return tuple(node for node in inside if node in found)
