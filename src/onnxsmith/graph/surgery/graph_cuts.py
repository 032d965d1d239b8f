"""Cuts a graph at tensors: new graph inputs replace them for their readers. The tensors themselves may become
outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned


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

    Unneeded nodes, initializers and inputs are removed. Names that the graph does not have are ignored.
    """
    made = cloned(model)
    graph = made.graph
    values = {value.name or "": value for node in graph for value in node.outputs}
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
