"""Replaces nodes of one operator by nodes that a function writes."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes._shaped_copy import Places
from onnxsmith.graph.structure import provenance
from onnxsmith.graph.surgery.node_insertion import Inserter

Rewrite = Callable[[ir.Node, Inserter], "ir.Value | None"]
"""A function that writes the replacement of a node in front of it, and returns the result; None leaves the node as it
is."""


def rewritten(places: Places, op: str, rewrite: Rewrite) -> None:
    """Replaces each node of the operator for which `rewrite` returns a result."""
    for node in places.nodes(op):
        write = places.inserter(node)
        made = rewrite(node, write)
        if made is None:
            for one in reversed(write.made):
                write.graph.remove(one, safe=True)
            continue
        provenance.inherit(write.made, [node])
        places.replace(node, write, made)


def sizes(value: ir.Value | None) -> list[int] | None:
    """Returns the sizes of a tensor; None if a size is unknown."""
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return [int(size) for size in value.shape]  # type: ignore[arg-type]
