"""Removes nodes that no output needs."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.graph import captures


def remove_unneeded(model: ir.Model) -> int:
    """Removes the nodes of the main graph whose results nothing reads, and returns their number. Nodes inside branches
    and bodies stay."""
    gone = 0
    for node in reversed(list(model.graph)):
        if any(value.uses() or value.is_graph_output() for value in node.outputs):
            continue
        captures.release(node)
        model.graph.remove(node, safe=True)
        gone += 1
    return gone
