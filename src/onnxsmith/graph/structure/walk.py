"""Walks over a whole model, with its subgraphs and functions.

No other module enumerates the subgraphs of a node or the nodes of a model. Of onnx messages, `name_validation` does.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import onnx_ir as ir


def all_nodes(model: ir.Model) -> Iterator[ir.Node]:
    """Yields every node of the main graph, of branches and loop bodies, and of model-local functions."""
    yield from nodes(model.graph)
    for function in model.functions.values():
        yield from nodes(function)


_TENSOR, _TENSORS = ir.AttributeType.TENSOR, ir.AttributeType.TENSORS
_GRAPH, _GRAPHS = ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS
FLAT = "onnxsmith.flat"
"""Is the key of a graph's `meta` that marks a graph that has no branches or bodies and will not get any. Walks then
skip the search for them. If the graph does not change at all, it holds a tuple of the nodes, which is faster to walk
than the linked list of onnx-ir."""


def mark_flat(model: ir.Model) -> None:
    """Marks the graph of a model without branches, bodies and functions. For verbs that change no graph."""
    if not model.functions and not any(True for _ in nested(model.graph)):
        model.graph.meta[FLAT] = tuple(model.graph)


@contextmanager
def flat(model: ir.Model) -> Iterator[None]:
    """Marks the graph as `mark_flat` does, for a block that changes no graph."""
    is_marked = FLAT in model.graph.meta
    mark_flat(model)
    try:
        yield
    finally:
        if not is_marked:
            model.graph.meta.pop(FLAT, None)


def holds_subgraphs(attribute: ir.Attr) -> bool:
    """Whether an attribute is a branch or a body, several of them, or a reference to such an attribute."""
    return attribute.type is _GRAPH or attribute.type is _GRAPHS


def has_subgraphs(node: ir.Node) -> bool:
    """Whether the node may have branches or a body. Saves the slow generator `subgraphs` for most nodes, which have
    none."""
    for attribute in node.attributes.data.values():
        kind = attribute.type
        if kind is _GRAPH or kind is _GRAPHS:
            return True
    return False


def subgraphs(node: ir.Node) -> Iterator[ir.Graph]:
    """Yields the branches or the body of a node, without nested graphs."""
    for attribute in node.attributes.data.values():
        kind = attribute.type
        if (kind is not _GRAPH and kind is not _GRAPHS) or attribute.is_ref():
            continue
        if kind is _GRAPH:
            yield attribute.as_graph()
        else:
            yield from attribute.as_graphs()


def named_subgraphs(node: ir.Node) -> Iterator[tuple[str, ir.Graph]]:
    """Yields the graphs of `subgraphs`, each with the attribute's name (and position, if the attribute holds
    several)."""
    for attribute in node.attributes.data.values():
        if not holds_subgraphs(attribute) or attribute.is_ref():
            continue
        if attribute.type is _GRAPH:
            yield attribute.name, attribute.as_graph()
        else:
            yield from ((f"{attribute.name}[{index}]", graph) for index, graph in enumerate(attribute.as_graphs()))


def direct(graph: ir.Graph | ir.Function) -> Iterable[ir.Node]:
    """Returns the nodes of a graph, without those in its branches and bodies."""
    flat = graph.meta.get(FLAT)
    if isinstance(flat, tuple) and flat and flat[0].graph is graph:  # a copy of a graph has the original's tuple
        return flat
    return graph


def nodes(graph: ir.Graph | ir.Function) -> Iterator[ir.Node]:
    """Yields every node of a graph, each followed by the nodes of its branches or body."""
    if FLAT in graph.meta:
        yield from direct(graph)
        return
    for node in graph:
        yield node
        if node.attributes.data and has_subgraphs(node):
            for inner in subgraphs(node):
                yield from nodes(inner)


def inside(node: ir.Node) -> Iterator[ir.Node]:
    """Yields every node in the branches or the body of a node."""
    for inner in subgraphs(node):
        yield from nodes(inner)


def upstream(values: Iterable[ir.Value], stop: Collection[ir.Value] = ()) -> set[ir.Value]:
    """Returns values and everything that they depend on, also through branches and bodies. What lies behind the values
    of `stop` is left out."""
    left, seen = list(values), set[ir.Value]()
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        node = None if value in stop else value.producer()
        if node is not None:
            left += [one for one in node.inputs if one is not None]
            left += [output for graph in subgraphs(node) for output in graph.outputs]
    return seen


def nested(graph: ir.Graph | ir.Function) -> Iterator[ir.Graph]:
    """Yields every branch and loop body in a graph, at any depth."""
    for node in graph if FLAT not in graph.meta else ():
        if node.attributes.data and has_subgraphs(node):
            for inner in subgraphs(node):
                yield inner
                yield from nested(inner)


def main_graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """Yields the main graph, and every branch and loop body in it."""
    yield model.graph
    yield from nested(model.graph)


def count_nodes(model: ir.Model) -> int:
    """Counts the nodes of the model without `Constant` nodes, which compute nothing."""
    return sum(node.op_type != "Constant" or node.domain != "" for node in all_nodes(model))


def count_constants(model: ir.Model) -> int:
    """Counts the `Constant` nodes of the model, which `count_nodes` leaves out."""
    return sum(node.op_type == "Constant" and node.domain == "" for node in all_nodes(model))


def histogram(model: ir.Model) -> dict[str, int]:
    """Counts the operators of the model, the most frequent first; operators of other domains have a prefix."""
    counts = Counter(op_name(node) for node in all_nodes(model))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def op_name(node: ir.Node) -> str:
    """Returns `Conv`, or `com.microsoft::Gelu` for an operator of another domain."""
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def around(model: ir.Model, graph: ir.Graph) -> list[ir.Graph]:
    """Returns the graphs from the main graph, or from a function, down to `graph`; an empty list if `graph` is not in
    the model."""
    for root in (model.graph, *(function.graph for function in model.functions.values())):
        found = _descend(root, graph)
        if found:
            return found
    return []


def _descend(root: ir.Graph, graph: ir.Graph) -> list[ir.Graph]:
    if root is graph:
        return [root]
    for node in root if FLAT not in root.meta else ():
        for inner in subgraphs(node):
            found = _descend(inner, graph)
            if found:
                return [root, *found]
    return []


RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
)
"""Lists operators that draw random numbers."""


def random_nodes(model: ir.Model) -> list[ir.Node]:
    """Returns the nodes that draw random numbers without a seed, so that two runs differ."""
    return [n for n in all_nodes(model) if n.op_type in RANDOM and not n.domain and "seed" not in n.attributes]


def node_label(node: ir.Node) -> str:
    """Names a node: by its name, or by its first named output."""
    if node.name:
        return node.name
    return next((f"-> {value.name}" for value in node.outputs if value.name), f"an unnamed {node.op_type}")


def graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """Yields the main graph, and every branch and loop body, also in functions."""
    yield from main_graphs(model)
    for function in model.functions.values():
        yield from nested(function)


def graphs_and_functions(model: ir.Model) -> Iterator[ir.Graph]:
    """Yields the graphs of `graphs`, then the graph of each function."""
    yield from graphs(model)
    for function in model.functions.values():
        yield function.graph


def values_of(some: Iterable[ir.Graph]) -> Iterator[ir.Value]:
    """Yields the inputs, the initializers and the results of nodes of these graphs, graph by graph."""
    for graph in some:
        yield from graph.inputs
        yield from graph.initializers.values()
        for node in graph:
            yield from node.outputs


def values(model: ir.Model) -> Iterator[ir.Value]:
    """Yields every value of every graph: inputs, initializers, results of nodes."""
    for graph in graphs(model):
        yield from dict.fromkeys((*graph.inputs, *graph.initializers.values()))
    for node in all_nodes(model):
        yield from node.outputs


def initializers(model: ir.Model) -> Iterator[ir.Value]:
    """Yields every initializer with a value, in the main graph and all subgraphs."""
    for graph in graphs(model):
        yield from (value for value in graph.initializers.values() if value.const_value is not None)


def tensors(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    """Yields every stored tensor: initializers, attributes, default attributes of functions."""
    yield from initializer_tensors(model)
    yield from attribute_tensors(model)


FIRST_WITH_CONSTANTS = 4
"""Is the first IR version in which an initializer need not be a graph input (onnx.proto: IR_VERSION_2019_1_22)."""


def has_own_initializers(model: ir.Model) -> bool:
    """Whether initializers may be constants. Before IR version 4 each initializer is also an input, which a caller may
    replace."""
    return model.ir_version is None or model.ir_version >= FIRST_WITH_CONSTANTS


def initializer_tensors(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    """Yields the tensors of `initializers`."""
    yield from (value.const_value for value in initializers(model) if value.const_value is not None)


def attribute_tensors(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    """Yields tensors in attributes: mostly of `Constant` nodes."""
    holders: Iterable[ir.Node | ir.Function] = itertools.chain(all_nodes(model), model.functions.values())
    for holder in holders:
        for attribute in holder.attributes.data.values():  # `data` itself, for speed: most nodes have no tensor
            kind = attribute.type
            if (kind is not _TENSOR and kind is not _TENSORS) or attribute.is_ref():
                continue
            if kind is _TENSOR:
                yield attribute.value  # not through `as_tensor`, whose check of the type takes longer than the walk
            else:
                yield from attribute.as_tensors()
