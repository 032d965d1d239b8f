"""Removes from a finished model what costs bytes and says nothing new."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.graph import provenance, walk


def slimmed(model: ir.Model) -> tuple[str, ...]:
    """Shortens the texts about the origins of nodes, and removes the declared types of initializers, which have their
    own. In a model of a few hundred kilobytes they are a tenth of the quantised file. Returns what the report says."""
    gone = provenance.abridge(model)
    for graph in walk.graphs(model):
        for value in graph.initializers.values():
            if value.const_value is not None and not value.is_graph_input() and not value.is_graph_output():
                value.type, value.shape = None, None
    return (f"{gone:,} characters about the origins of nodes went; their modules and lines stay",) if gone else ()
