"""The subgraphs of a node, and the outer values that they capture."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

_GRAPH, _GRAPHS = ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS


def subgraphs(node: ir.Node) -> Iterator[ir.Graph]:
    """Yields the branches or the body of a node, without nested ones."""
    for attribute in node.attributes.values() if node.attributes else ():
        kind = attribute.type
        if (kind is not _GRAPH and kind is not _GRAPHS) or attribute.is_ref():
            continue
        if kind is _GRAPH:
            yield attribute.as_graph()
        else:
            yield from attribute.as_graphs()


def release(node: ir.Node) -> None:
    """Removes the inputs of every node in `node`'s subgraphs, so that the captured values lose these readers.

    Call it before removing `node`: the removal frees the node's own inputs only.
    """
    for graph in subgraphs(node):
        for inner in list(graph.all_nodes()):
            for index in range(len(inner.inputs)):
                inner.replace_input_with(index, None)
        graph.outputs.clear()
