"""Joins two models into one: tensors of the first become inputs of the second."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import onnx_ir as ir

from onnxsmith.graph.structure import attribute_keys, walk
from onnxsmith.graph.structure.fresh import Names, unused
from onnxsmith.graph.structure.model_copy import cloned


def joined(
    first: ir.Model, second: ir.Model, wires: Mapping[str, str], renamed: list[tuple[ir.Value, str]] | None = None
) -> ir.Model:
    """Returns a copy of `first` with the nodes of `second` behind its own. `wires` maps inputs of `second` to the names
    of tensors of `first`'s main graph. Other inputs of `second` are inputs of the result, shared with an input of
    `first` of the same name. The outputs are those of `first`, then those of `second`.

    Tensors and nodes of `second` whose names are taken get a number behind their names; the tensors are added to
    `renamed`, with their old names. The caller must ensure that the
    opsets are equal, and that local functions with the same name are equal.
    """
    whole, part = cloned(first), cloned(second)
    graph = whole.graph
    values = {value.name: value for node in graph for value in node.outputs}
    values |= {value.name: value for value in (*graph.initializers.values(), *graph.inputs)}
    names = Names(whole)
    ports = list(part.graph.inputs)
    outputs = list(part.graph.outputs)
    joints = {port: values[wires[port.name or ""]] for port in ports if port.name in wires}
    own_inputs = {value.name: value for value in graph.inputs}
    joints |= {port: own_inputs[port.name] for port in ports if port not in joints and port.name in own_inputs}
    part.graph.inputs.clear()
    part.graph.outputs.clear()
    for port, value in joints.items():
        outputs = [value if one is port else one for one in outputs]
        port.replace_all_uses_with(value)
        part.graph.initializers.pop(port.name or "", None)
    free = [port for port in ports if port not in joints]
    called = {
        value: value.name or ""
        for graph_ in walk.graphs(part)
        for value in (*graph_.inputs, *graph_.initializers.values(), *(out for node in graph_ for out in node.outputs))
    }
    for graph_ in walk.graphs(part):
        for value in list(dict.fromkeys((*graph_.inputs, *graph_.initializers.values()))):
            value.name = names.free(value.name or "")
        for node in graph_:
            for value in node.outputs:
                if value.name:
                    value.name = names.free(value.name)
    for port in free:
        if port.name not in part.graph.initializers:
            port.name = names.free(port.name or "")
    if renamed is not None:
        renamed += [(value, name) for value, name in called.items() if name and value.name != name]
    taken = {node.name for node in walk.all_nodes(whole) if node.name}
    for node in walk.nodes(part.graph):
        if node.name:
            node.name = unused(node.name, taken)
            taken.add(node.name)
    nodes = list(part.graph)
    part.graph.remove(nodes)
    weights = list(part.graph.initializers.values())
    part.graph.initializers.clear()
    for value in weights:
        graph.initializers[value.name or ""] = value
    graph.inputs.extend(free)
    graph.extend(nodes)
    graph.outputs.extend(outputs)
    for domain, version in part.opset_imports.items():
        whole.opset_imports.setdefault(domain, version)
    for identifier, function in part.functions.items():
        whole.functions.setdefault(identifier, function)
    return whole


def equal_functions(one: ir.Function, two: ir.Function) -> bool:
    """Whether two functions are equal, up to docs, metadata and declared types."""
    return _key(one) == _key(two)


def _key(function: ir.Function) -> Hashable:
    opsets = frozenset(function.opset_imports.items())
    return function.identifier(), opsets, attribute_keys.of_holder(function), attribute_keys.of_body(function)
