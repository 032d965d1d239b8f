"""Cuts out of two models what cannot be run or repeated here, so that the parts around it can be compared.

A node of another domain for which no kernel is installed, or one that draws random numbers, is the same in both models.
In the cut models its results are inputs, and what it reads are outputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.model import shapes, walk
from onnxsmith.model.copying import cloned

_KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
_PREFIX = "foreign"


def foreign_nodes(model: ir.Model) -> list[ir.Node]:
    """Nodes of the main graph that belong to a domain that no runtime here brings, or draw random numbers."""
    random = set(walk.random_nodes(model))
    functions = {(domain, name) for domain, name, _ in model.functions}
    return [
        node
        for node in model.graph
        if node in random or (node.domain not in _KNOWN_DOMAINS and (node.domain, node.op_type) not in functions)
    ]


def around(reference: ir.Model, candidate: ir.Model) -> tuple[ir.Model, ir.Model, str] | None:
    """Both models without their foreign nodes, and what was left out; None where these cannot be paired or there are
    none. `reference` names every pair; a node that only it has was dropped because nothing depended on it."""
    shaped, _ = shapes.inferred(reference)
    ours = _keyed(foreign_nodes(shaped))
    copy = cloned(candidate)
    theirs = _keyed(foreign_nodes(copy))
    if not theirs or not theirs.keys() <= ours.keys() or len(theirs) != len(foreign_nodes(copy)):
        return None
    for index, key in enumerate(ours):
        if key not in theirs:
            continue
        if len(ours[key].inputs) != len(theirs[key].inputs) or len(ours[key].outputs) != len(theirs[key].outputs):
            return None
        ports = [_port(ours[key], value, f"{_PREFIX}{index}.result{k}") for k, value in enumerate(ours[key].outputs)]
        _cut(shaped, ours[key], ports, f"{_PREFIX}{index}")
        _cut(copy, theirs[key], [_like(port) for port in ports], f"{_PREFIX}{index}")
    left_out = Counter(node.op_type for node in foreign_nodes(reference))
    names = ", ".join(f"{count} {op_type}" for op_type, count in left_out.items())
    return shaped, copy, f"only the parts around what cannot be run or repeated here were verified: {names}"


def _keyed(nodes: Sequence[ir.Node]) -> dict[tuple[str, ...], ir.Node]:
    """The nodes by operator and name, where that is unique, else by operator and place among its like."""
    names = Counter(node.name for node in nodes)
    places: Counter[tuple[str, str]] = Counter()
    keyed: dict[tuple[str, ...], ir.Node] = {}
    for node in nodes:
        kind = (node.domain, node.op_type)
        places[kind] += 1
        own = node.name if node.name and names[node.name] == 1 else f"#{places[kind]}"
        keyed[*kind, own] = node
    return keyed


def _port(node: ir.Node, value: ir.Value, name: str) -> ir.Value:
    """An input in the result's place. Of whose type nothing is known looks like what the node reads: it is made up."""
    like = next((v for v in (value, *node.inputs) if v is not None and v.dtype is not None), None)
    shaped = next((v for v in (value, *node.inputs) if v is not None and v.shape is not None), None)
    dtype = like.dtype if like is not None and like.dtype is not None else ir.DataType.FLOAT
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=shaped.shape if shaped is not None else None)


def _like(port: ir.Value) -> ir.Value:
    return ir.Value(name=port.name, type=port.type, shape=port.shape)


def _cut(model: ir.Model, node: ir.Node, ports: Sequence[ir.Value], prefix: str) -> None:
    graph = model.graph
    for index, value in enumerate(node.inputs):
        if value is None or value.is_initializer():
            continue
        graph.outputs.append(_copied(graph, node, value, f"{prefix}.operand{index}"))
    for port, value in zip(ports, node.outputs, strict=True):
        if not value.uses() and not value.is_graph_output():
            continue
        graph.inputs.append(port)
        if value.is_graph_output():
            name = value.name
            value.name = f"{prefix}.{name}"
            graph.outputs[list(graph.outputs).index(value)] = _copied(graph, node, port, name or "")
        value.replace_all_uses_with(port)
    graph.remove(node, safe=True)


def _copied(graph: ir.Graph, node: ir.Node, value: ir.Value, name: str) -> ir.Value:
    """The value once more under a name of its own: it may be an input, or an output already."""
    identity = ir.node("Identity", [value])
    result = identity.outputs[0]
    result.name, result.type, result.shape = name, value.type, value.shape
    graph.insert_before(node, identity)
    return result
