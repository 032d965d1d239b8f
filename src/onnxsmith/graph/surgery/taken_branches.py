"""Replaces each If by the branch that it takes for a particular input."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery import body_splicing


def choices(model: ir.Model) -> dict[ir.Node, ir.Value]:
    """Returns the Ifs of the main graph with their conditions."""
    found = {}
    for node in model.graph:
        if node.op_type == "If" and not node.domain and node.inputs and node.inputs[0] is not None:
            found[node] = node.inputs[0]
    return found


def take(model: ir.Model, taken: Mapping[ir.Node, bool]) -> None:
    """Replaces each node by its taken branch, in `model` itself. Names of values stay, unless another value in the
    graph has the same name."""
    names = Names(model)
    for node, condition in taken.items():
        attribute = node.attributes.get("then_branch" if condition else "else_branch")
        if attribute is not None:
            _put(node, attribute.as_graph(), names)


def _put(node: ir.Node, branch: ir.Graph, names: Names) -> None:
    """Replaces the node by the branch. An Identity makes each output of the node, so that the output keeps its name."""
    _, results = body_splicing.splice(node, branch, names)
    for old, result in zip(node.outputs, results, strict=True):
        made = body_splicing.copied(node, result)
        made.name, made.type, made.shape = old.name, old.type or result.type, old.shape
        old.name = f"{old.name}_replaced"
        old.replace_all_uses_with(made, replace_graph_outputs=True)
    body_splicing.remove(node)
