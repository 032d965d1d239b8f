"""Removes nodes from a graph. Their results are replaced by inputs that hold the values, or by similar tensors."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.tensor_facts import Known, port
from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.runtimes.base import Value


def computing(graph: ir.Graph) -> list[int]:
    """Returns the positions of the computing nodes: all except `Constant`."""
    return [index for index, node in enumerate(graph) if node.op_type != "Constant" or node.domain]


def without(case: Case, doomed: Iterable[int], known: Known, *, bypass: bool, live: bool) -> Case | None:
    """Removes the nodes at these positions of the main graph, and the nodes that only they needed.

    With `bypass`, the result of a removed node is replaced by a tensor of the same dtype and shape from which it was
    computed, if there is one. Otherwise the result becomes an input, or an initializer if an `.npz` cannot hold its
    value. With `live`, the operands of removed nodes become outputs. None if some value cannot be replaced.
    """
    copy = cloned(case.model)
    graph = copy.graph
    nodes = list(graph)
    removed = _removable([nodes[index] for index in doomed], known)
    if not removed:
        return None
    order = {node: index for index, node in enumerate(nodes)}
    inside = {inner for node in removed for inner in _whole(node)}
    ordered = sorted(removed, key=order.__getitem__)
    read = _read_by(ordered) if live else []
    feeds: dict[str, Value] = dict(case.feeds)
    for value in (value for node in ordered for value in node.outputs):
        needed = _is_read(value, inside)
        if not needed and not value.is_graph_output():
            continue
        source = _alike(value, inside, known) if bypass else None
        if value.is_graph_output():
            _drop_output(graph, value, source)
        if source is not None:
            value.replace_all_uses_with(source)
        elif needed:
            made = port(value.name or "", known)
            if made is None:
                return None
            _put_in(graph, value, made[0])
            if made[1] is not None and made[0].const_value is None:
                feeds[made[0].name or ""] = made[1]
    _settle_outputs(graph, [v for v in read if v.producer() not in inside], [n for n in nodes if n not in inside])
    _remove(graph, ordered)
    if not graph.outputs:
        return None
    _declare(graph, known)
    prune(copy)
    return fed(copy, feeds)


def _removable(wanted: list[ir.Node], known: Known) -> list[ir.Node]:
    """Returns the nodes whose results can be replaced. A sequence, or a tensor of unknown dtype, needs its node as long
    as it has readers."""
    inside = {inner for node in wanted for inner in _whole(node)}
    queue = list(wanted)
    while queue:
        node = queue.pop()
        if node not in inside:
            continue
        if any(_is_read(value, inside) and not known.is_cuttable(value) for value in node.outputs):
            inside.difference_update(_whole(node))
            queue += [
                maker for value in captures.reads(node) if (maker := value.producer()) is not None and maker in inside
            ]
    return [node for node in wanted if node in inside]


def _whole(node: ir.Node) -> Iterable[ir.Node]:
    """Yields the node and the nodes in its bodies."""
    yield node
    for body in walk.subgraphs(node):
        yield from walk.nodes(body)


def _is_read(value: ir.Value, inside: set[ir.Node]) -> bool:
    """Whether a node outside reads the value, also in a body; `inside` includes the nodes of bodies."""
    return any(node not in inside for node in value.consumers())


def _read_by(nodes: Iterable[ir.Node]) -> list[ir.Value]:
    return list(dict.fromkeys(value for node in nodes for value in captures.reads(node)))


def _alike(value: ir.Value, inside: set[ir.Node], known: Known) -> ir.Value | None:
    """Returns the nearest tensor outside from which `value` was computed, of the same dtype and shape."""
    wanted = known.kind(value.name or "")
    if wanted is None or wanted[1] is None:
        return None
    seen: set[ir.Value] = set()
    level = [value]
    while level:
        reads = [v for item in level if (maker := item.producer()) is not None for v in captures.reads(maker)]
        found = [v for v in dict.fromkeys(reads) if v not in seen]
        seen.update(found)
        for item in found:
            outside = item.producer() not in inside and not item.is_initializer()
            if outside and not _is_constant(item) and known.kind(item.name or "") == wanted:
                return item
        level = [item for item in found if item.producer() in inside]
    return None


def _is_constant(value: ir.Value) -> bool:
    maker = value.producer()
    return maker is not None and maker.op_type == "Constant"


def _drop_output(graph: ir.Graph, value: ir.Value, source: ir.Value | None) -> None:
    """Replaces the output by `source` if that can be an output, or else removes it."""
    places = [index for index, output in enumerate(graph.outputs) if output is value]
    fits = source is not None and source.producer() is not None and not source.is_graph_output()
    for index in reversed(places):
        if fits and index == places[0] and source is not None:
            graph.outputs[index] = source
        else:
            graph.outputs.pop(index)


def _put_in(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    old.replace_all_uses_with(new)
    old.name = None
    if new.const_value is None:
        graph.inputs.append(new)
    else:
        graph.register_initializer(new)


def _settle_outputs(graph: ir.Graph, read: list[ir.Value], kept: list[ir.Node]) -> None:
    """Makes operands of removed nodes outputs. If no output is left, makes the results of the last node outputs."""
    here = set(kept)
    for value in read:
        if value.producer() in here and not value.is_graph_output() and not _is_constant(value):
            graph.outputs.append(value)
    if not graph.outputs:
        last = next((n for n in reversed(kept) if n.op_type != "Constant" or n.domain), None)
        if last is not None:
            graph.outputs.extend(value for value in last.outputs if value.name)


def _declare(graph: ir.Graph, known: Known) -> None:
    """Gives outputs their known types and shapes, which the format requires."""
    for value in graph.outputs:
        kind = known.kind(value.name or "")
        if value.type is None and kind is not None:
            value.type = ir.TensorType(kind[0])
            value.shape = None if kind[1] is None else ir.Shape(kind[1])


def _remove(graph: ir.Graph | ir.Function, nodes: list[ir.Node]) -> None:
    for node in reversed(nodes):
        captures.release(node)
    for node in reversed(nodes):
        graph.remove(node, safe=True)


def prune(model: ir.Model) -> None:
    """Removes everything that no output needs: nodes, initializers, inputs, functions."""
    holders: list[ir.Graph | ir.Function] = [*reversed(list(walk.graphs(model))), *model.functions.values()]
    for holder in holders:
        _prune_nodes(holder)
    for graph in walk.main_graphs(model):
        for name, value in list(graph.initializers.items()):
            if not value.uses() and not value.is_graph_output():
                if value.is_graph_input() and graph is not model.graph:
                    continue
                del graph.initializers[name]
    inputs = model.graph.inputs
    for index in reversed(range(len(inputs))):
        value = inputs[index]
        if not value.uses() and not value.is_graph_output():
            inputs.pop(index)
    called = {node.op_identifier() for node in walk.all_nodes(model)}
    while gone := [key for key in model.functions if key not in called]:
        for key in gone:
            del model.functions[key]
        called = {node.op_identifier() for node in walk.all_nodes(model)}


def _prune_nodes(graph: ir.Graph | ir.Function) -> None:
    for node in reversed(list(graph)):
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            captures.release(node)
            graph.remove(node, safe=True)
