"""What a node's subgraphs read from outside."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

_GRAPH, _GRAPHS = ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS


def subgraphs(node: ir.Node) -> Iterator[ir.Graph]:
    """The branches or the body of a node, not those nested in them."""
    for attribute in node.attributes.values() if node.attributes else ():
        kind = attribute.type
        if (kind is not _GRAPH and kind is not _GRAPHS) or attribute.is_ref():
            continue
        if kind is _GRAPH:
            yield attribute.as_graph()
        else:
            yield from attribute.as_graphs()


def release(node: ir.Node) -> None:
    """Takes the inputs of every node in `node`'s subgraphs away, so that what these captured counts as read no longer.

    For a node that is about to go: removing it frees its own inputs only.
    """
    for graph in subgraphs(node):
        for inner in list(graph.all_nodes()):
            for index in range(len(inner.inputs)):
                inner.replace_input_with(index, None)
        graph.outputs.clear()
