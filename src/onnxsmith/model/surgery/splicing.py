"""A body in the place of the node that holds it: the branch of an If, one iteration of a Loop or a Scan."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.graph import captures, provenance
from onnxsmith.model.graph.fresh import Names


def splice(node: ir.Node, body: ir.Graph, names: Names) -> tuple[list[ir.Node], list[ir.Value]]:
    """Moves the initializers and nodes of `body`, one of `node`'s own, into the graph around, before the node. Returns
    the moved nodes, in their order, and what the body gave out, which may be a value from outside, or one of the body's
    inputs: what these were has to be put in their place by the caller, before or after.

    Names stay, unless a value of another graph has the same: there it would now hide this one, or be hidden by it.
    `names` knows those of the whole model, and goes on to, without what goes with the node: the body's inputs and the
    other bodies. The node is left to the caller, who puts something in the place of its outputs, and then calls
    `remove`.
    """
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    for value in body.inputs:
        if value.name and not value.is_initializer():
            names.drop(value.name)
    for other in captures.subgraphs(node):
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
    """The value once more and without a name, by an Identity before the node: for one that cannot be an output, or has
    a name that others know."""
    identity = ir.node("Identity", [value])
    identity.outputs[0].name = None
    provenance.inherit([identity], [node])
    assert node.graph is not None
    node.graph.insert_before(node, identity)
    return identity.outputs[0]


def remove(node: ir.Node) -> None:
    """Takes the node out of its graph, with what is left of its bodies; nobody reads its outputs any more."""
    assert node.graph is not None
    captures.release(node)
    node.graph.remove(node, safe=True)


def _rename(value: ir.Value, names: Names) -> None:
    if value.name and names.is_shared(value.name):
        names.drop(value.name)
        value.name = names.free(value.name)
