"""Removes nodes and initializers that no output needs, and functions that nothing calls."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.structure import captures, walk


def remove_unneeded(model: ir.Model) -> int:
    """Removes nodes of the main graph whose results nothing reads, then unread initializers. Returns the number of
    nodes. Nodes inside branches and bodies stay."""
    gone = 0
    # In reverse, so that producers of a removed node are unread when their turn comes.
    for node in reversed(list(model.graph)):
        if any(value.uses() or value.is_graph_output() for value in node.outputs):
            continue
        captures.release(node)
        model.graph.remove(node, safe=True)
        gone += 1
    for name, value in list(model.graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del model.graph.initializers[name]
    return gone


def called_functions(model: ir.Model) -> set[ir.OperatorIdentifier]:
    """Returns the local functions that a node of the model, or of a function, calls."""
    return {node.op_identifier() for node in walk.all_nodes(model)} & set(model.functions)


def remove_uncalled(model: ir.Model, before: set[ir.OperatorIdentifier]) -> None:
    """Removes the functions that were called `before` and are not called any more. Repeats this, because the removed
    functions may have called other functions."""
    while gone := before & set(model.functions) - called_functions(model):
        for identifier in gone:
            del model.functions[identifier]
        forget_domains(model, {identifier[0] for identifier in gone})


def forget_domains(model: ir.Model, domains: set[str]) -> None:
    """Removes the opset imports of these domains if no node or function uses them any more."""
    used = {node.domain for node in walk.all_nodes(model)} | {one[0] for one in model.functions}
    for domain in domains - used - {""}:
        model.opset_imports.pop(domain, None)
