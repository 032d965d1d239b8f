"""Cleans up after an edit: removes dead nodes and unread initializers, and sorts nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure import captures, quantization_annotations, walk


def tidy(model: ir.Model, *, keep: bool = False) -> list[str]:
    """Removes initializers that nothing reads, unless the caller wants to `keep` them, and sorts graphs whose nodes are
    out of order. Returns the names of the removed initializers. Those that a quantization annotation names stay.

    Raises:
        OnnxsmithError: `edit/cycle` if a node depends on its own result.
    """
    gone: list[str] = []
    unread = [
        value
        for graph in (() if keep else walk.graphs(model))
        for value in graph.initializers.values()
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input()
    ]
    annotated = quantization_annotations.named(model) if unread else ()
    for value in unread:
        if value.name not in annotated and isinstance(value.graph, ir.Graph):
            del value.graph.initializers[value.name or ""]
            gone.append(value.name or "")
    for graph in walk.graphs(model):
        seen: set[ir.Node] = set()
        for node in graph:
            made_by = (value.producer() for value in captures.reads(node))
            if any(one is not None and one.graph is graph and one not in seen and one is not node for one in made_by):
                _sort(graph)
                break
            seen.add(node)
    return gone


def _sort(graph: ir.Graph) -> None:
    try:
        graph.sort()
    except ValueError as error:
        raise problem(
            "edit/cycle",
            "the edit makes a node depend on its own result",
            where=graph.name or "",
            why=str(error),
            fix="do not let a node read a tensor that depends on its result",
        ) from error


def remove_unneeded(model: ir.Model) -> int:
    """Removes nodes of the main graph whose results nothing reads, then unread initializers. Returns the number of
    nodes. Nodes inside branches and bodies stay."""
    gone = 0
    # In reverse, so that producers of a removed node are unread when their turn comes.
    for node in reversed(list(model.graph)):
        if any(value.uses() or value.is_graph_output() for value in node.outputs):
            continue
        remove([node])
        gone += 1
    for name, value in list(model.graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del model.graph.initializers[name]
    return gone


def read_names(model: ir.Model) -> frozenset[str]:
    """Returns the names of the node results that a node or a graph output reads, in branches and bodies too."""
    values = (value for node in walk.all_nodes(model) for value in node.outputs)
    return frozenset(value.name for value in values if value.name and (value.uses() or value.is_graph_output()))


def no_longer_read(model: ir.Model, before: frozenset[str], names: Mapping[ir.Value, str]) -> list[ir.Node]:
    """Returns the nodes that an edit left without a reader, consumers before producers: nothing needs their results,
    and something read them `before`. Of the nodes that nothing ever read, only constants are among them. `names` maps
    values to their names before the edit; other values have kept their names."""
    dead: list[ir.Node] = []
    gone: set[ir.Node] = set()
    for graph in reversed(list(walk.graphs_and_functions(model))):
        for node in reversed(list(graph)):
            if any(value.is_graph_output() for value in node.outputs):
                continue
            readers = [use.node for value in node.outputs for use in value.uses()]
            was_read = any(names.get(value, value.name or "") in before for value in node.outputs)
            if all(one in gone for one in readers) and (readers or was_read or node.op_type == "Constant"):
                dead.append(node)
                gone.update((node, *walk.inside(node)))
    return dead


def remove(nodes: Iterable[ir.Node]) -> None:
    """Removes nodes that nothing needs; consumers come before producers."""
    for node in nodes:
        captures.release(node)
        if node.graph is not None:
            node.graph.remove(node, safe=True)


def remove_unread(nodes: Sequence[ir.Node], end: ir.Node) -> list[ir.Node]:
    """Removes those of the new nodes, in graph order, whose results nothing reads. Keeps `end`. Returns the nodes that
    stay."""
    kept = []
    for node in reversed(nodes):
        if node is end or any(value.uses() or value.is_graph_output() for value in node.outputs):
            kept.append(node)
        else:
            remove([node])
    return kept[::-1]


def called_functions(model: ir.Model) -> set[ir.OperatorIdentifier]:
    """Returns the local functions that a node of the model, or of a function, calls."""
    return {node.op_identifier() for node in walk.all_nodes(model)} & set(model.functions)


def remove_uncalled(model: ir.Model, before: set[ir.OperatorIdentifier]) -> None:
    """Removes the functions that were called `before` and are not called any more. Repeats this, because the removed
    functions may have called other functions."""
    while gone := before & set(model.functions) - called_functions(model):
        for identifier in gone:
            del model.functions[identifier]
