"""Removes the parts of a model on which no output depends."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.passes.base import May, Pass, PassResult, always
from onnxsmith.graph.structure import captures, walk


class Unused(Pass):
    """Removes nodes without readers, then initializers and functions without readers.

    Always kept: graph inputs, graph outputs, initializers that are graph inputs (defaults that a caller may replace),
    unread outputs of a used node (their positions have meaning), nodes whose results a used subgraph captures.
    """

    title = "nodes, initializers and functions that no output depends on"

    def run(self, model: ir.Model, may: May = always) -> PassResult:
        gone: list[str] = []
        for graph in walk.main_graphs(model):
            gone += _nodes(graph)
        for function in model.functions.values():
            gone += _nodes(function.graph)
        for graph in walk.main_graphs(model):
            for name, value in list(graph.initializers.items()):
                if not value.uses() and not value.is_graph_input() and not value.is_graph_output():
                    del graph.initializers[name]
                    gone.append(f"initializer {name}")
        gone += _functions(model)
        return PassResult(model, bool(gone), gone)


def _nodes(graph: ir.Graph) -> list[str]:
    """Removes unread nodes in one backward walk, so that a node's unread readers are removed before the node."""
    gone: list[str] = []
    for node in reversed(graph):
        for output in node.outputs:  # not `any`: a generator for each node is slow
            if output.uses() or output.is_graph_output():
                break
        else:
            gone.append(f"{node.op_type} {node.name or node.outputs[0].name if node.outputs else ''}".strip())
            captures.release(node)
            graph.remove(node, safe=True)
    return gone


def _functions(model: ir.Model) -> list[str]:
    """Removes the functions that no node calls, directly or through other functions."""
    if not model.functions:
        return []
    called: set[ir.OperatorIdentifier] = set()
    queue = [node.op_identifier() for node in walk.nodes(model.graph)]
    while queue:
        identifier = queue.pop()
        if identifier in called or identifier not in model.functions:
            continue
        called.add(identifier)
        queue += [node.op_identifier() for node in walk.nodes(model.functions[identifier])]
    unused = [identifier for identifier in model.functions if identifier not in called]
    for identifier in unused:
        del model.functions[identifier]
    return [f"function {domain}::{name}" for domain, name, _ in unused]
