"""Counts the nodes that become unused if a node is removed."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir


def is_read_outside(value: ir.Value, inside: Collection[ir.Node]) -> bool:
    """Whether the value is a graph output, or a node that is not `inside` reads it."""
    return value.is_graph_output() or any(reader not in inside for reader in value.consumers())


def freed(node: ir.Node, kept: Collection[ir.Value] = (), most: int = 64) -> int:
    """Returns how many nodes become unused if this node is removed: itself, and the nodes whose results only such nodes
    read. Constants and the producers of `kept` values do not count. The search stops at `most` nodes, so that its cost
    is bounded."""
    gone = {node}
    queue = [node]
    while queue and len(gone) < most:
        for value in queue.pop().inputs:
            made_by = value.producer() if value is not None else None
            if made_by is None or made_by in gone or made_by.graph is not node.graph or made_by.op_type == "Constant":
                continue
            if not any(one in kept or is_read_outside(one, gone) for one in made_by.outputs):
                gone.add(made_by)
                queue.append(made_by)
    return len(gone)
