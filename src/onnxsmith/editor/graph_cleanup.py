"""Cleans up after an edit: removes unread initializers, and sorts nodes."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure import captures, walk


def tidy(model: ir.Model) -> None:
    """Removes initializers that nothing reads, and sorts graphs whose nodes are out of order.

    Raises:
        OnnxsmithError: `edit/cycle` if a node depends on its own result.
    """
    for graph in walk.graphs(model):
        for name, value in list(graph.initializers.items()):
            if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
                del graph.initializers[name]
    for graph in walk.graphs(model):
        seen: set[ir.Node] = set()
        for node in graph:
            made_by = (value.producer() for value in captures.reads(node))
            if any(one is not None and one.graph is graph and one not in seen and one is not node for one in made_by):
                _sort(graph)
                break
            seen.add(node)


def _sort(graph: ir.Graph) -> None:
    try:
        graph.sort()
    except ValueError as error:
        raise problem(
            "edit/cycle",
            "the edit makes a node depend on its own result",
            where=graph.name or "",
            why=str(error),
            fix="do not let a node read what depends on it",
        ) from error
