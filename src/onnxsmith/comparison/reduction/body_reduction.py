"""Removes nodes from branches, loop bodies and functions, and moves bodies into the graph around them.

Moved are functions, the taken branch of an If, and the first iteration of a Loop or Scan.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.node_removal import prune
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.tensor_facts import Known, made_up, tensor
from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.value_replacement import can_be_output, take_over
from onnxsmith.graph.surgery import body_splicing, opset_conversion
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.runtimes.base import Array


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


_HOLDERS = {"If", "Loop", "Scan"}


def inline_functions(case: Case, known: Known, oracle: Oracle) -> Case:
    """Inlines model-local functions, if the case still fails. The case is unchanged if they cannot be inlined."""
    if not case.model.functions:
        return case
    model, trouble = inlined(case.model)
    smaller = fed(model, case.feeds)
    return smaller if not trouble and oracle.fails(smaller) else case


def inline_bodies(case: Case, known: Known, oracle: Oracle) -> Case:
    """Replaces nodes with bodies by their bodies, each if the case still fails."""
    refused: set[str] = set()
    while True:
        place = next((at for at, key in _holders(case.model) if key not in refused), None)
        if place is None:
            return case
        refused.add(dict(_holders(case.model))[place])
        flat = next((made for made in _flattened(case, place, known) if oracle.fails(made)), None)
        case = flat or case


def _holders(model: ir.Model) -> list[tuple[int, str]]:
    """Returns nodes with bodies in the main graph, the last first, each with a key that identifies it."""
    found = enumerate(model.graph)
    return [(at, repr([v.name for v in n.outputs])) for at, n in found if n.op_type in _HOLDERS and not n.domain][::-1]


def _flattened(case: Case, place: int, known: Known) -> Iterator[Case]:
    node = case.model.graph[place]
    if node.op_type != "If":
        yield from _one(case, place, "body")
        return
    held = known.values.get((node.inputs[0].name if node.inputs and node.inputs[0] else "") or "")
    taken = bool(held.ravel()[0]) if isinstance(held, np.ndarray) and held.size == 1 else True
    # The branch that the recorded condition takes first.
    for name in ("then_branch", "else_branch") if taken else ("else_branch", "then_branch"):
        yield from _one(case, place, name)


def _one(case: Case, place: int, attribute: str) -> Iterator[Case]:
    copy = cloned(case.model)
    node = copy.graph[place]
    if attribute in node.attributes and _put(copy, node, node.attributes[attribute].as_graph()):
        prune(copy)
        yield fed(copy, case.feeds)


def _put(model: ir.Model, node: ir.Node, body: ir.Graph) -> bool:
    """Replaces the node by the body. Returns False if their ports do not match."""
    names = Names(model)
    given = _given(node, body, names)
    if given is None:
        return False
    held = dict(zip(list(body.inputs), given, strict=True))
    results = [held.get(value, value) for value in body_splicing.splice(node, body, names)[1]]
    for old, new in held.items():
        old.replace_all_uses_with(new)
    finals = _results(node, results, names, opset_conversion.of(model))
    if finals is None or not all(v.producer() is not None or v.is_initializer() or v.is_graph_input() for v in finals):
        return False
    for old, new in zip(node.outputs, finals, strict=True):
        fits = not old.is_graph_output() or can_be_output(new, model.graph)
        take_over(old, new if fits else body_splicing.copied(node, new))
    body_splicing.remove(node)
    return True


def _given(node: ir.Node, body: ir.Graph, names: Names) -> list[ir.Value] | None:
    """Returns the values of the body's inputs in the first iteration."""
    found: list[ir.Value | None]
    if node.op_type == "If":
        found = []
    elif node.op_type == "Loop":
        found = [_new_constant(node, np.array(0, np.int64), names), _new_constant(node, np.array(True), names)]
        found += node.inputs[2:]
    else:
        count = node.attributes["num_scan_inputs"].as_int() if "num_scan_inputs" in node.attributes else 0
        split = len(node.inputs) - count
        axes = node.attributes["scan_input_axes"].as_ints() if "scan_input_axes" in node.attributes else [0] * count
        found = list(node.inputs[:split])
        zero = _new_constant(node, np.array(0, np.int64), names)
        for scanned, axis in zip(node.inputs[split:], axes, strict=True):
            found.append(_before(node, ir.node("Gather", [scanned, zero], {"axis": axis}), names.free("slice")))
    if len(found) != len(body.inputs) or any(value is None for value in found):
        return None
    return [value for value in found if value is not None]


def _results(node: ir.Node, results: list[ir.Value], names: Names, version: int) -> list[ir.Value] | None:
    """Returns the node's results after one iteration: states as they are, scanned outputs with a new axis of size 1."""
    own = results[1:] if node.op_type == "Loop" else results
    if len(own) < len(node.outputs) or (node.op_type == "If" and len(own) > len(node.outputs)):
        return None
    count = node.attributes["num_scan_inputs"].as_int() if "num_scan_inputs" in node.attributes else 0
    states = len(own) if node.op_type == "If" else len(node.inputs) - (2 if node.op_type == "Loop" else count)
    found = own[: len(node.outputs)]
    return [v if at < states else _with_axis(node, v, names, version) for at, v in enumerate(found)]


def _with_axis(node: ir.Node, value: ir.Value, names: Names, version: int) -> ir.Value:
    if version < 13:
        made = ir.node("Unsqueeze", [value], {"axes": [0]})
    else:
        made = ir.node("Unsqueeze", [value, _new_constant(node, np.array([0], np.int64), names)])
    return _before(node, made, names.free("scanned"))


def _new_constant(node: ir.Node, array: Array, names: Names) -> ir.Value:
    return _before(node, ir.node("Constant", [], {"value": ir.Tensor(array)}), names.free("constant"))


def _before(node: ir.Node, made: ir.Node, name: str) -> ir.Value:
    """Inserts the new node before `node`, and returns its output."""
    assert node.graph is not None
    node.graph.insert_before(node, made)
    made.outputs[0].name = name
    return made.outputs[0]
