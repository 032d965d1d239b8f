"""Removes ports of nodes whose bodies stay: states of a Loop or Scan, scanned outputs, and results of an If."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.chunk_removal import swept
from onnxsmith.comparison.reduction.node_removal import prune
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.tensor_facts import Known
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned

_FIXED = {"Loop": 2, "Scan": 0}
"""Inputs of the node, and of its body, before the first state: a Loop's count and condition."""
_LISTS = ("scan_output_axes", "scan_output_directions")


def fewer(case: Case, known: Known, oracle: Oracle) -> Case:
    """Removes states that the failure does not need, and results that no node reads. Readers of a removed state, in the
    body or after it, read its initial value instead. A node keeps at least one output."""

    def take(current: Case, chosen: list[int]) -> list[Case | None]:
        copy = cloned(current.model)
        nodes = list(walk.all_nodes(copy))
        found = list(_droppable(copy))
        for place, index in reversed([found[at] for at in chosen]):
            if len(nodes[place].outputs) == 1:
                return []
            _drop(nodes[place], index)
        prune(copy)
        return [fed(copy, current.feeds)]

    return swept(case, oracle, lambda c: list(range(len(list(_droppable(c.model))))), take)


def _droppable(model: ir.Model) -> Iterator[tuple[int, int]]:
    """Yields a node's position among all nodes, and the index of an output that may be removed."""
    for place, node in enumerate(walk.all_nodes(model)):
        if not _is_sound(node) or len(node.outputs) < 2:
            continue
        states = _states(node)
        for index, value in enumerate(node.outputs):
            if value.is_graph_output():
                continue
            if index < states:
                if node.inputs[_FIXED[node.op_type] + index] is not None:
                    yield place, index
            elif not value.uses():
                yield place, index


def _is_sound(node: ir.Node) -> bool:
    """Whether the node is an If, Loop or Scan whose ports match those of its bodies."""
    if node.domain or node.op_type not in ("If", "Loop", "Scan"):
        return False
    bodies = list(walk.subgraphs(node))
    if node.op_type == "If":
        return len(bodies) == 2 and all(len(body.outputs) == len(node.outputs) for body in bodies)
    fixed, first = _FIXED[node.op_type], int(node.op_type == "Loop")
    if len(bodies) != 1 or len(bodies[0].inputs) != len(node.inputs) or len(node.inputs) < fixed:
        return False
    return len(bodies[0].outputs) - first == len(node.outputs) >= _states(node) >= 0


def _states(node: ir.Node) -> int:
    if node.op_type == "If":
        return 0
    scanned = node.attributes["num_scan_inputs"].as_int() if "num_scan_inputs" in node.attributes else 0
    return len(node.inputs) - _FIXED[node.op_type] - scanned


def _drop(node: ir.Node, index: int) -> None:
    states, first = _states(node), int(node.op_type == "Loop")
    for body in walk.subgraphs(node):
        body.outputs.pop(first + index)
    if index < states:
        at = _FIXED[node.op_type] + index
        initial, (body,) = node.inputs[at], walk.subgraphs(node)
        assert initial is not None
        _give(body, body.inputs.pop(at), initial)
        node.outputs[index].replace_all_uses_with(initial)
        inputs = [value for place, value in enumerate(node.inputs) if place != at]
        node.resize_inputs(len(inputs))
        for place, value in enumerate(inputs):
            node.replace_input_with(place, value)
    else:
        for name in _LISTS:
            if name in node.attributes:
                held = list(node.attributes[name].as_ints())
                node.attributes[name] = ir.AttrInt64s(name, held[: index - states] + held[index - states + 1 :])
    _close(node, index)


def _give(body: ir.Graph, held: ir.Value, initial: ir.Value) -> None:
    """Replaces a body's input by its initial value. If the body returns the input, it returns a copy of the value
    instead."""
    name, held.name = held.name, None
    if held.is_graph_output():
        node = ir.node("Identity", [initial])
        node.outputs[0].name, node.outputs[0].type, node.outputs[0].shape = name, held.type, held.shape
        body.append(node)
        for index, value in enumerate(body.outputs):
            if value is held:
                body.outputs[index] = node.outputs[0]
    held.replace_all_uses_with(initial)


def _close(node: ir.Node, index: int) -> None:
    """Removes an unread output; later outputs move up, with their names and readers."""
    for old, new in zip(node.outputs[index + 1 :], node.outputs[index:], strict=False):
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        new.name, old.name = old.name, None
        new.type, new.shape = old.type, old.shape
    node.resize_outputs(len(node.outputs) - 1)
