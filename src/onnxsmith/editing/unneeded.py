"""Removes nodes and initializers that no output needs."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.graph import captures


def remove_unneeded(model: ir.Model) -> int:
    """Removes the nodes of the main graph whose results nothing reads, then unread initializers; returns the number of
    nodes. What is inside branches and bodies stays."""
    gone = 0
    for node in reversed(list(model.graph)):
        if any(value.uses() or value.is_graph_output() for value in node.outputs):
            continue
        captures.release(node)
        model.graph.remove(node, safe=True)
        gone += 1
    for name, value in list(model.graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del model.graph.initializers[name]
    return gone
