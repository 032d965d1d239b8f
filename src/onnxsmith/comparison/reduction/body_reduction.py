"""Removes nodes from branches, loop bodies and functions."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.node_removal import prune
from onnxsmith.comparison.reduction.tensor_facts import Known, made_up, tensor
from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.model_copy import cloned


def computing(model: ir.Model) -> list[int]:
    """Returns the positions, among all nodes of the model, of the computing nodes in bodies and functions."""
    return [
        index
        for index, node in enumerate(walk.all_nodes(model))
        if node.graph is not model.graph and (node.op_type != "Constant" or node.domain)
    ]


def without(case: Case, doomed: list[int], known: Known) -> Case | None:
    """Removes the nodes at these positions. The result of a removed node is replaced by an earlier value of its dtype
    and shape in the same body, from which it was computed, or by a constant. None if neither is possible."""
    copy = cloned(case.model)
    all_nodes = list(walk.all_nodes(copy))
    chosen = [all_nodes[index] for index in doomed]
    inside = set(chosen)
    for node in chosen:
        inside.update(walk.inside(node))
    for node in chosen:
        graph = node.graph
        if graph is None or graph is copy.graph:
            continue
        for value in node.outputs:
            if not value.is_graph_output() and all(reader in inside for reader in value.consumers()):
                continue
            source = _alike(value, inside, known) or _constant(graph, value, known)
            if source is None:
                return None
            value.replace_all_uses_with(source, replace_graph_outputs=True)
    for node in chosen:
        captures.release(node)
    for node in reversed(chosen):
        if node.graph is not None:
            node.graph.remove(node, safe=True)
    prune(copy)
    return fed(copy, case.feeds)


def _alike(value: ir.Value, inside: set[ir.Node], known: Known) -> ir.Value | None:
    """Returns the nearest value of the same graph, dtype and shape outside the chunk from which `value` was computed.
    In a function these are unknown, so any value counts. A value that is already an output does not count, because a
    graph lists an output only once."""
    wanted = _kind(value, known)
    level, seen = [value], {value}
    graph = value.producer().graph  # type: ignore[union-attr]
    if wanted is None and not isinstance(graph, ir.Function):
        return None
    while level:
        found = [v for item in level if (m := item.producer()) is not None for v in m.inputs if v and v not in seen]
        seen.update(found)
        for item in found:
            own = item.graph is graph or (item.producer() is not None and item.producer().graph is graph)  # type: ignore[union-attr]
            if not own or item.producer() in inside or item.is_initializer() or _kind(item, known) != wanted:
                continue
            if not (value.is_graph_output() and (item.is_graph_output() or item.is_graph_input())):
                return item
        level = [item for item in found if item.producer() in inside]
    return None


def _constant(graph: ir.Graph | ir.Function, value: ir.Value, known: Known) -> ir.Value | None:
    kind = _kind(value, known)
    if kind is None or kind[1] is None or value.producer() is None:
        return None
    array = known.array(value.name or "")
    held = tensor(made_up(kind[0], kind[1]) if array is None else array, value.name or "")
    node = ir.node("Constant", [], {"value": held})
    node.outputs[0].name, value.name = value.name, None
    node.outputs[0].type, node.outputs[0].shape = ir.TensorType(kind[0]), ir.Shape(kind[1])
    graph.insert_before(value.producer(), node)  # type: ignore[arg-type]
    return node.outputs[0]


def _kind(value: ir.Value, known: Known) -> tuple[ir.DataType, tuple[int, ...] | None] | None:
    found = known.kind(value.name or "")
    if found is not None or value.dtype is None or value.shape is None:
        return found
    shape = tuple(value.shape.numpy()) if value.shape.is_static() else None
    return value.dtype, shape
