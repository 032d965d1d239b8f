"""Replaces a node by one of its bodies: a branch of an If, or one iteration of a Loop or a Scan."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.structure import captures, provenance, walk
from onnxsmith.graph.structure.fresh import Names


def splice(node: ir.Node, body: ir.Graph, names: Names) -> tuple[list[ir.Node], list[ir.Value]]:
    """Moves the initializers and nodes of `body`, one of `node`'s bodies, into the outer graph, before the node.

    Returns the moved nodes, in order, and the body's outputs. An output may be a value of the outer graph, or an input
    of the body. The caller replaces the body's inputs (before or after), replaces the outputs of the node, and then
    calls `remove`.

    Names stay, unless a value in another graph has the same name, because one would then hide the other. `names` has
    the names of the whole model and is kept up to date: the names of the body's inputs and of the other bodies are
    dropped."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    for value in body.inputs:
        if value.name and not value.is_initializer():
            names.drop(value.name)
    for other in walk.subgraphs(node):
        if other is not body:
            names.drop_graph(other)
    results = list(body.outputs)
    body.outputs.clear()
    for value in list(body.initializers.values()):
        del body.initializers[value.name or ""]
        _rename(value, names)
        graph.register_initializer(value)
    moved = list(body)
    body.remove(moved)
    for value in (value for inner in moved for value in inner.outputs):
        _rename(value, names)
    graph.insert_before(node, moved)
    return moved, results


def copied(node: ir.Node, value: ir.Value) -> ir.Value:
    """Returns a nameless copy of the value, made by an Identity before the node. Needed for a value that cannot become
    an output, or whose name must stay."""
    identity = ir.node("Identity", [value])
    identity.outputs[0].name = None
    provenance.inherit([identity], [node])
    assert node.graph is not None
    node.graph.insert_before(node, identity)
    return identity.outputs[0]


def remove(node: ir.Node) -> None:
    """Removes the node from its graph, with the rest of its bodies. Its outputs must be unread by now."""
    assert node.graph is not None
    captures.release(node)
    node.graph.remove(node, safe=True)


def _rename(value: ir.Value, names: Names) -> None:
    if value.name and names.is_shared(value.name):
        names.drop(value.name)
        value.name = names.free(value.name)
