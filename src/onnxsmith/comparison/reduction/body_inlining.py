"""Moves bodies into the graph around them, where nodes can be removed one by one.

These are functions, the taken branch of an If, and the first iteration of a Loop or Scan.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.node_removal import prune
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.tensor_facts import Known
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.value_replacement import can_be_output, take_over
from onnxsmith.graph.surgery import body_splicing, opset_conversion
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.runtimes.base import Array

_HOLDERS = {"If", "Loop", "Scan"}


def functions(case: Case, known: Known, oracle: Oracle) -> Case:
    """Inlines model-local functions, if the case still fails. The case is unchanged if they cannot be inlined."""
    if not case.model.functions:
        return case
    model, trouble = inlined(case.model)
    smaller = fed(model, case.feeds)
    return smaller if not trouble and oracle.fails(smaller) else case


def bodies(case: Case, known: Known, oracle: Oracle) -> Case:
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
        found = [_constant(node, np.array(0, np.int64), names), _constant(node, np.array(True), names)]
        found += node.inputs[2:]
    else:
        count = node.attributes["num_scan_inputs"].as_int() if "num_scan_inputs" in node.attributes else 0
        split = len(node.inputs) - count
        axes = node.attributes["scan_input_axes"].as_ints() if "scan_input_axes" in node.attributes else [0] * count
        found = list(node.inputs[:split])
        zero = _constant(node, np.array(0, np.int64), names)
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
        made = ir.node("Unsqueeze", [value, _constant(node, np.array([0], np.int64), names)])
    return _before(node, made, names.free("scanned"))


def _constant(node: ir.Node, array: Array, names: Names) -> ir.Value:
    return _before(node, ir.node("Constant", [], {"value": ir.Tensor(array)}), names.free("constant"))


def _before(node: ir.Node, made: ir.Node, name: str) -> ir.Value:
    """Inserts the new node before `node`, and returns its output."""
    assert node.graph is not None
    node.graph.insert_before(node, made)
    made.outputs[0].name = name
    return made.outputs[0]
