"""Finds the outer values that the subgraphs of a node capture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from onnxsmith.graph.structure import walk


def is_undefined(value: ir.Value) -> bool:
    """Whether nothing makes the value. A valid model has no such value."""
    return value.producer() is None and not value.is_graph_input() and not value.is_initializer()


def release(node: ir.Node) -> None:
    """Removes the inputs of every node in `node`'s subgraphs, so that the captured values lose these readers.

    Call it before removing `node`: the removal frees the node's own inputs only.
    """
    for graph in walk.subgraphs(node):
        for inner in list(walk.nodes(graph)):
            for index in range(len(inner.inputs)):
                inner.replace_input_with(index, None)
        graph.outputs.clear()


def captured(node: ir.Node) -> list[ir.Value]:
    """Returns the values that a node's branches or bodies read from outside, at any depth, each once."""
    made: set[ir.Value] = set()
    read: dict[ir.Value, None] = {}
    waiting = list(walk.subgraphs(node))
    while waiting:
        graph = waiting.pop(0)
        made.update(graph.inputs, graph.initializers.values())
        for one in graph:
            made.update(one.outputs)
            read.update(dict.fromkeys(value for value in one.inputs if value is not None))
            waiting += walk.subgraphs(one)
        read.update(dict.fromkeys(graph.outputs))
    return [value for value in read if value not in made]


def reads(node: ir.Node) -> list[ir.Value]:
    """Returns the values that a node reads, each once: its operands, and what its branches or bodies capture."""
    operands = (value for value in node.inputs if value is not None)
    return list(dict.fromkeys((*operands, *captured(node))))


def read_instead(nodes: Iterable[ir.Node], replaced: Mapping[ir.Value, ir.Value]) -> None:
    """Makes nodes, and the nodes in their branches and bodies, read other values in place of the `replaced` values."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        for index, value in enumerate(node.inputs):
            if value is not None and value in replaced:
                node.replace_input_with(index, replaced[value])
        for graph in walk.subgraphs(node):
            waiting += graph
            for index, value in enumerate(graph.outputs):
                if value in replaced:
                    graph.outputs[index] = replaced[value]
