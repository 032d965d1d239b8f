"""Puts bodies into the graph around them, where the pieces can be taken out one by one: functions, the branch of an If
that is taken, the first iteration of a Loop or a Scan."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from onnxsmith.model import captures
from onnxsmith.model.copying import cloned
from onnxsmith.model.fresh import Names
from onnxsmith.reduction.case import Case, fed
from onnxsmith.reduction.cuts import prune
from onnxsmith.reduction.oracle import Oracle
from onnxsmith.reduction.tensors import Known
from onnxsmith.runtimes.base import Array

_HOLDERS = {"If", "Loop", "Scan"}


def functions(case: Case, known: Known, oracle: Oracle) -> Case:
    """The case without model-local functions, if it fails so."""
    if not case.model.functions:
        return case
    copy = cloned(case.model)
    try:
        inlined = InlinePass()(copy).model
    except Exception:  # noqa: BLE001 — functions that call each other, say; the model stays as it is
        return case
    smaller = Case(inlined, case.feeds)
    return smaller if oracle.fails(smaller) else case


def bodies(case: Case, known: Known, oracle: Oracle) -> Case:
    """The case with bodies put in the place of their nodes, each where the case fails so."""
    refused: set[str] = set()
    while True:
        place = next((at for at, key in _holders(case.model) if key not in refused), None)
        if place is None:
            return case
        refused.add(dict(_holders(case.model))[place])
        flat = next((made for made in _flattened(case, place, known) if oracle.fails(made)), None)
        case = flat or case


def _holders(model: ir.Model) -> list[tuple[int, str]]:
    """Nodes with bodies in the main graph, the last first, and what tells each from the others."""
    found = enumerate(model.graph)
    return [(at, repr([v.name for v in n.outputs])) for at, n in found if n.op_type in _HOLDERS and not n.domain][::-1]


def _flattened(case: Case, place: int, known: Known) -> Iterator[Case]:
    node = case.model.graph[place]
    if node.op_type != "If":
        yield from _one(case, place, "body")
        return
    held = known.values.get((node.inputs[0].name if node.inputs and node.inputs[0] else "") or "")
    taken = bool(held.ravel()[0]) if isinstance(held, np.ndarray) and held.size == 1 else True
    for name in ("then_branch", "else_branch") if taken else ("else_branch", "then_branch"):
        yield from _one(case, place, name)


def _one(case: Case, place: int, attribute: str) -> Iterator[Case]:
    copy = cloned(case.model)
    node = copy.graph[place]
    if attribute in node.attributes and _splice(copy, node, node.attributes[attribute].as_graph()):
        prune(copy)
        yield fed(copy, case.feeds)


def _splice(model: ir.Model, node: ir.Node, body: ir.Graph) -> bool:
    """Moves the body before the node, which goes. False where the two do not fit together."""
    graph, names = model.graph, Names(model)
    if not all(value.producer() is not None and value.producer().graph is body for value in body.outputs):  # type: ignore[union-attr]
        return False
    before: list[ir.Node] = []
    given = _given(node, body, before, names)
    if given is None:
        return False
    for old, new in zip(list(body.inputs), given, strict=True):
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    results = list(body.outputs)
    while body.outputs:
        body.outputs.pop()
    for name, value in list(body.initializers.items()):
        del body.initializers[name]
        value.name = names.free(name) if name in graph.initializers or names.is_shared(name) else name
        graph.register_initializer(value)
    moved = list(body)
    body.remove(moved)
    for value in (value for inner in moved for value in inner.outputs if value.name):
        if names.is_shared(value.name or ""):
            value.name = names.free(value.name or "")
    graph.insert_before(node, [*before, *moved])
    after: list[ir.Node] = []
    finals = _results(node, results, after, names, graph.opset_imports.get("", 1))
    graph.insert_before(node, after)
    for value, final in zip(node.outputs, finals, strict=True):
        if final is None:
            return False
        value.replace_all_uses_with(final, replace_graph_outputs=True)
    captures.release(node)
    graph.remove(node, safe=True)
    return len(set(graph.outputs)) == len(graph.outputs)


def _given(node: ir.Node, body: ir.Graph, before: list[ir.Node], names: Names) -> list[ir.Value] | None:
    """What the body's inputs are in the first iteration."""
    if node.op_type == "If":
        return [] if not body.inputs else None
    found: list[ir.Value | None]
    if node.op_type == "Loop":
        first = [_constant(np.array(0, np.int64), before, names), _constant(np.array(True), before, names)]
        found = [*first, *node.inputs[2:]]
    else:
        count = node.attributes["num_scan_inputs"].as_int() if "num_scan_inputs" in node.attributes else 0
        split = len(node.inputs) - count
        axes = node.attributes["scan_input_axes"].as_ints() if "scan_input_axes" in node.attributes else [0] * count
        found = list(node.inputs[:split])
        zero = _constant(np.array(0, np.int64), before, names)
        for scanned, axis in zip(node.inputs[split:], axes, strict=True):
            piece = ir.node("Gather", [scanned, zero], {"axis": axis})
            piece.outputs[0].name = names.free("slice")
            before.append(piece)
            found.append(piece.outputs[0])
    if len(found) != len(body.inputs) or any(value is None for value in found):
        return None
    return [value for value in found if value is not None]


def _results(
    node: ir.Node, results: list[ir.Value], after: list[ir.Node], names: Names, opset: int
) -> list[ir.Value | None]:
    """What the node's outputs are after one iteration: states as they are, what is scanned with an axis of one."""
    if node.op_type == "If":
        return list(results) if len(results) == len(node.outputs) else [None] * len(node.outputs)
    own = results[1:] if node.op_type == "Loop" else results
    count = node.attributes["num_scan_inputs"].as_int() if "num_scan_inputs" in node.attributes else 0
    states = len(node.inputs) - (2 if node.op_type == "Loop" else count)
    found: list[ir.Value | None] = []
    for index in range(len(node.outputs)):
        if index >= len(own):
            found.append(None)
        elif index < states:
            found.append(own[index])
        else:
            found.append(_with_axis(own[index], after, names, opset))
    return found


def _with_axis(value: ir.Value, after: list[ir.Node], names: Names, opset: int) -> ir.Value:
    if opset < 13:
        node = ir.node("Unsqueeze", [value], {"axes": [0]})
    else:
        node = ir.node("Unsqueeze", [value, _constant(np.array([0], np.int64), after, names)])
    node.outputs[0].name = names.free("scanned")
    after.append(node)
    return node.outputs[0]


def _constant(array: Array, nodes: list[ir.Node], names: Names) -> ir.Value:
    node = ir.node("Constant", [], {"value": ir.Tensor(array)})
    node.outputs[0].name = names.free("constant")
    nodes.append(node)
    return node.outputs[0]
