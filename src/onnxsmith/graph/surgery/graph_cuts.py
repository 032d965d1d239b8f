"""Cuts a graph at tensors: new graph inputs replace them for their readers. The tensors themselves may become
outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import own_values


@dataclass(frozen=True)
class Cut:
    """A model that computes the tensors in `outputs`, each from the nearest cuts above it.

    `inputs` maps the cut tensors that the model still reads to the names of the new inputs. Graph inputs keep their
    names. `outputs` maps the requested tensors to the names of the outputs.
    """

    model: ir.Model
    inputs: dict[str, str]
    outputs: dict[str, str]


def cut(model: ir.Model, cuts: Collection[str], outputs: Iterable[str]) -> Cut:
    """Makes a copy of `model` (weights shared) that computes the values `outputs` of the main graph from the tensors
    `cuts`.

    Unneeded nodes, initializers and inputs are left out: the copy takes as long as what is left. Names that the graph
    does not have are ignored.
    """
    outputs = tuple(outputs)
    made, begins = _part(model, frozenset(cuts), frozenset(outputs))
    graph = made.graph
    values = {value.name or "": value for node in graph for value in node.outputs}
    values |= {value.name or "": value for value in begins}
    names = Names(made)
    given: dict[str, ir.Value] = {}
    graph.outputs.clear()
    for name in cuts:
        value = values.get(name)
        if value is None:
            continue
        port = ir.Value(name=names.free(f"{name}.given"), type=value.type, shape=value.shape)
        value.replace_all_uses_with(port, replace_graph_outputs=True)  # a branch may return the value directly
        given[name] = port
    asked = [values[name] for name in outputs if name in values]
    graph.outputs.extend(asked)
    needed = keep_needed(graph)
    graph.inputs.extend(port for port in given.values() if port in needed)
    return Cut(
        made,
        {name: port.name or "" for name, port in given.items() if port in needed},
        {value.name or "": value.name or "" for value in asked},
    )


def _part(model: ir.Model, cuts: Collection[str], outputs: Collection[str]) -> tuple[ir.Model, list[ir.Value]]:
    """Returns a copy of the nodes that compute `outputs` from `cuts`, with what they read, and the inputs of the copy
    that stand for cut tensors."""
    graph = model.graph
    asked = [node for node in graph if any(value.name in outputs for value in node.outputs)]
    needed, queue = set(asked), list(asked)
    read: dict[ir.Value, None] = {}
    while queue:
        for value in captures.reads(queue.pop()):
            read[value] = None
            node = value.producer()
            if node is not None and node.graph is graph and node not in needed and value.name not in cuts:
                needed.add(node)
                queue.append(node)
    begins = [value for value in read if (node := value.producer()) is not None and node not in needed]
    own = [value for value in graph.inputs if value in read]
    view = ir.GraphView(
        [*own, *begins],
        [value for node in asked for value in node.outputs if value.name in outputs],
        nodes=[node for node in graph if node in needed],
        initializers=[value for value in graph.initializers.values() if value in read],
        doc_string=graph.doc_string,
        opset_imports=graph.opset_imports,
        name=graph.name,
        metadata_props=graph.metadata_props,
    )
    part = view.clone()
    part.meta.update(graph.meta)
    made = ir.Model(
        part,
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.model_version,
        doc_string=model.doc_string,
        functions=[function.clone() for function in model.functions.values()],
        metadata_props=dict(model.metadata_props),
        device_configurations=model.device_configurations,
    )
    own_values(made)
    return made, list(part.inputs[len(own) :])


def keep_needed(graph: ir.Graph) -> set[ir.Value]:
    """Removes the nodes, initializers and inputs that no output needs; returns the needed values."""
    needed: set[ir.Value] = set(graph.outputs)
    dead: list[ir.Node] = []
    for node in reversed(list(graph)):
        if not any(value in needed for value in node.outputs):
            dead.append(node)
            continue
        needed.update(value for value in node.inputs if value is not None)
        for inner in walk.subgraphs(node):
            for below in walk.nodes(inner):
                needed.update(value for value in below.inputs if value is not None)
            needed.update(inner.outputs)
    for node in dead:
        captures.release(node)
    graph.remove(dead, safe=True)
    for name, value in list(graph.initializers.items()):
        if value not in needed:
            del graph.initializers[name]
        elif value.type is None and value.const_value is not None:
            value.type = ir.TensorType(value.const_value.dtype)
    kept = [value for value in graph.inputs if value in needed]
    graph.inputs.clear()
    graph.inputs.extend(kept)
    return needed
