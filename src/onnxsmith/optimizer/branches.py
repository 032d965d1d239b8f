"""Replaces an If with a constant condition by its taken branch."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.value_replacement import take_over
from onnxsmith.graph.surgery import body_splicing
from onnxsmith.optimizer.simplification_state import State

RULE = "fold/branch"


def flatten(state: State) -> bool:
    """Moves the taken branch of each If with a constant condition into the outer graph, in place. Returns whether there
    was one.

    The branch's nodes and initializers keep their order, and their names unless another graph has the same name. An
    output of the branch may be a result of its nodes, an initializer, or the same value twice. A graph output keeps its
    name, if necessary through an Identity. Replaces nested Ifs, too, also inside remaining loops and branches. Leaves
    Ifs in functions.
    """
    names: Names | None = None
    changed = False
    queue = [node for graph in walk.main_graphs(state.model) for node in graph if _chosen(node) is not None]
    while queue:
        node = queue.pop()
        branch = _chosen(node)
        if branch is None or not isinstance(node.graph, ir.Graph):
            continue
        if not state.journal.fire(RULE, walk.node_label(node)):
            continue
        names = names or Names(state.model)
        state.stale.update(reader for value in node.outputs for reader in value.consumers())
        moved = _flatten(state, node, branch, names)
        changed = True
        queue += [inner for inner in moved if inner.op_type == "If"]
    return changed


def _chosen(node: ir.Node) -> ir.Graph | None:
    if node.op_type != "If" or node.domain or not node.inputs or node.graph is None:
        return None
    condition = facts.constant(node.inputs[0])
    if condition is None or condition.size != 1:
        return None
    attribute = node.attributes.get("then_branch" if bool(condition.ravel()[0]) else "else_branch")
    if attribute is None or attribute.is_ref():
        return None
    branch = attribute.as_graph()
    own = all(value.graph is branch for value in branch.outputs) and all(map(_is_made, branch.outputs))
    return branch if own and len(branch.outputs) == len(node.outputs) else None


def _is_made(value: ir.Value) -> bool:
    """Whether the branch itself makes the value. The format does not allow an outer value as an output of a branch."""
    return value.producer() is not None or value.is_initializer()


def _flatten(state: State, node: ir.Node, branch: ir.Graph, names: Names) -> list[ir.Node]:
    moved, results = body_splicing.splice(node, branch, names)
    own = {value for inner in moved for value in inner.outputs}
    for old, new in zip(node.outputs, results, strict=True):
        if old.is_graph_output() and (new not in own or new.is_graph_output()):
            new = body_splicing.copied(node, new)
        state.inference.replace(old, new)
        take_over(old, new)
    body_splicing.remove(node)
    return moved
