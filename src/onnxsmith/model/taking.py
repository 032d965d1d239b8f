"""A graph as one input goes through it: in the place of each If the branch that is taken."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.model import captures, provenance
from onnxsmith.model.fresh import Names


def choices(model: ir.Model) -> dict[ir.Node, ir.Value]:
    """The Ifs of the main graph, and the conditions that decide them."""
    found = {}
    for node in model.graph:
        if node.op_type == "If" and not node.domain and node.inputs and node.inputs[0] is not None:
            found[node] = node.inputs[0]
    return found


def take(model: ir.Model, taken: Mapping[ir.Node, bool]) -> None:
    """Puts the branch that is taken into the place of each of the nodes, in `model` itself. Names of values stay,
    unless another value in the graph has the same."""
    names = Names(model)
    for node, condition in taken.items():
        attribute = node.attributes.get("then_branch" if condition else "else_branch")
        if attribute is not None:
            _put(model.graph, node, attribute.as_graph(), names)


def _put(graph: ir.Graph, node: ir.Node, branch: ir.Graph, names: Names) -> None:
    results = list(branch.outputs)
    while branch.outputs:
        branch.outputs.pop()
    for name, value in list(branch.initializers.items()):
        del branch.initializers[name]
        value.name = names.free(name) if names.is_shared(name) or name in graph.initializers else name
        graph.register_initializer(value)
    moved = list(branch)
    branch.remove(moved)
    for value in (value for inner in moved for value in inner.outputs if value.name):
        if names.is_shared(value.name or ""):
            value.name = names.free(value.name or "")
    copies = []
    for old, result in zip(node.outputs, results, strict=True):
        copy = ir.node("Identity", [result])
        made = copy.outputs[0]
        made.name, made.type, made.shape = old.name, old.type or result.type, old.shape
        old.name = f"{old.name}_replaced"
        old.replace_all_uses_with(made, replace_graph_outputs=True)
        copies.append(copy)
    provenance.inherit(copies, [node])
    graph.insert_before(node, [*moved, *copies])
    captures.release(node)
    graph.remove(node, safe=True)
