"""Merges nodes that compute the same values."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.graph.passes.base import May, Pass, PassResult, always
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import attribute_keys, provenance, walk
from onnxsmith.graph.structure.value_replacement import take_over

_UNREPEATABLE = walk.RANDOM | {"Dropout"}
"""Lists operators that are never merged: nodes with equal seeds may still draw different numbers, because a runtime
continues its stream of random numbers."""


class CommonSubexpressions(Pass):
    """Merges nodes of one graph with the same operator, attributes and inputs into the first of them, in one walk.

    In the main graph, also merges integers of rank 0 or 1 that are equal expressions over symbolic dimensions, such as
    `batch` taken from two tensors.

    Not merged: random operators, seeded or not, and Dropout; nodes with subgraphs; operators of other domains and calls
    of functions, which may keep a state; two nodes whose results are both graph outputs, because each output needs its
    own value; nodes with different optional outputs; equal nodes of different graphs.
    """

    title = "nodes that compute the same, shared"

    def run(self, model: ir.Model, may: May = always) -> PassResult:
        where: list[str] = []
        functions = {(domain, name) for domain, name, _ in model.functions}
        for graph in walk.graphs_and_functions(model):
            where += _merged(graph, functions, may)
        where += _equal_integers(model.graph, may)
        return PassResult(model, bool(where), where)


def _merged(graph: ir.Graph, functions: set[tuple[str, str]], may: May) -> Iterator[str]:
    seen: dict[object, ir.Node] = {}
    for node in list(graph):
        if node.domain or node.op_type in _UNREPEATABLE or (node.domain, node.op_type) in functions:
            continue
        first = seen.setdefault(_key(node), node)
        if first is node or not _may_stand_for(first, node):
            continue
        where = f"{walk.node_label(node)} = {walk.node_label(first)}"
        if not may(where):
            continue
        for old, new in zip(node.outputs, first.outputs, strict=True):
            take_over(old, new)
        provenance.inherit([first], [first, node])
        graph.remove(node, safe=True)
        yield where


def _key(node: ir.Node) -> object:
    inputs = tuple(None if value is None else id(value) for value in node.inputs)
    outputs = tuple(bool(value.name) for value in node.outputs)
    return node.op_type, node.overload, inputs, outputs, attribute_keys.of_holder(node)


def _may_stand_for(first: ir.Node, node: ir.Node) -> bool:
    pairs = zip(first.outputs, node.outputs, strict=True)
    return not any(new.is_graph_output() and old.is_graph_output() for new, old in pairs)


def _equal_integers(graph: ir.Graph, may: May) -> Iterator[str]:
    seen: dict[object, ir.Value] = {}
    for node in graph:
        if node.op_type == "Constant" or node.domain:
            continue
        for value in node.outputs:
            key = _integers_key(value)
            if key is None:
                continue
            first = seen.setdefault(key, value)
            where = f"{value.name} = {first.name}"
            if first is not value and value.uses() and may(where):
                _redirect(value, first)
                yield where


def _redirect(value: ir.Value, first: ir.Value) -> None:
    """Makes the readers of `value` read `first`; a graph output keeps its value."""
    for reader, index in list(value.uses()):
        reader.replace_input_with(index, first)


def _integers_key(value: ir.Value) -> object:
    if value.dtype is None or value.shape is None or len(value.shape) > 1:
        return None
    elements = facts.integers(value)
    if elements is None or all(isinstance(element, int) for element in elements):
        return None  # folding handles constants
    return value.dtype, len(value.shape), elements
