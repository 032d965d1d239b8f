"""Makes models of the first nodes of a graph, and of single nodes. A target is asked about these models."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery.graph_cuts import cut


def labelled(model: ir.Model) -> tuple[ir.Model, dict[str, str]]:
    """Returns a copy in which each node has a unique name, so that a target's message names one node. The mapping gives
    the labels of the nodes in the original."""
    copy = cloned(model)
    labels: dict[str, str] = {}
    for index, node in enumerate(walk.all_nodes(copy)):
        label = walk.node_label(node)
        if not node.name or node.name in labels:
            node.name = f"{node.op_type}_node_{index}"
        labels[node.name] = label
    return copy, labels


def repeated_names(model: ir.Model) -> dict[str, int]:
    """Returns the names that several nodes of a graph share, and the number of nodes with each name."""
    counts = Counter(node.name for graph in walk.graphs(model) for node in graph if node.name)
    return {name: count for name, count in counts.items() if count > 1}


def interface_only(model: ir.Model) -> ir.Model | None:
    """Returns a model with the versions of `model` that returns its inputs unchanged; None if `model` has no inputs."""
    inputs = [
        ir.Value(name=value.name, type=value.type, shape=value.shape)
        for value in model.graph.inputs
        if value.type is not None and not value.is_initializer()
    ]
    if not inputs:
        return None
    nodes = [ir.node("Identity", [value]) for value in inputs]
    for index, (node, value) in enumerate(zip(nodes, inputs, strict=True)):
        node.name = f"same_{index}"
        node.outputs[0].name, node.outputs[0].type, node.outputs[0].shape = f"same_{index}.out", value.type, value.shape
    opsets = {domain: version for domain, version in model.opset_imports.items() if domain in ("", "ai.onnx")}
    graph = ir.Graph(
        inputs, [node.outputs[0] for node in nodes], nodes=nodes, opset_imports=opsets or {"": 17}, name="interface"
    )
    return ir.Model(graph, ir_version=model.ir_version)


def alone(model: ir.Model, node: ir.Node) -> ir.Model | None:
    """Returns a model of one node of the main graph. Computed operands become inputs, constants stay. Returns None if
    the type of an input or output is unknown."""
    read = [value for value in captures.reads(node) if _is_computed(value)]
    made = [value for value in node.outputs if value.name and (value.uses() or value.is_graph_output())]
    if not made or not all(_can_be_port(value) for value in (*read, *made)):
        return None
    return cut(model, [value.name or "" for value in read], [value.name or "" for value in made]).model


@dataclass(eq=False)
class Prefixes:
    """Makes the prefixes of a model's main graph. `ends` are the numbers of nodes after which the graph can be cut,
    because all values that later nodes read have a known type. Constants count as nodes."""

    model: ir.Model
    nodes: list[ir.Node] = field(init=False)
    ends: list[int] = field(init=False)
    _last_reader: dict[ir.Value, int] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = list(self.model.graph)
        self._last_reader = {value: len(self.nodes) for value in self.model.graph.outputs}
        for index, node in enumerate(self.nodes):
            for value in captures.reads(node):
                self._last_reader[value] = max(index, self._last_reader.get(value, -1))
        bad_until = self._unknown()
        # A last node without readers is dropped by `cut`, so its prefix would repeat the one before.
        self.ends = [end for end in range(1, len(self.nodes)) if bad_until[end] <= end and self._frontier_exists(end)]

    def _unknown(self) -> list[int]:
        """Returns for each number of nodes how far the values of unknown type among their results are still read."""
        worst, found = 0, [0]
        for index, node in enumerate(self.nodes):
            for value in node.outputs:
                if not _can_be_port(value) and value in self._last_reader:
                    worst = max(worst, self._last_reader[value] + 1)
            found.append(worst if worst > index + 1 else 0)
        return found

    def _frontier_exists(self, end: int) -> bool:
        return any(self._last_reader.get(value, -1) >= end for value in self.nodes[end - 1].outputs)

    def first(self, end: int) -> ir.Model:
        """Returns the model of the first `end` nodes. The model's outputs are graph outputs, and values that later
        nodes read."""
        names = [
            value.name or ""
            for node in self.nodes[:end]
            for value in node.outputs
            if self._last_reader.get(value, -1) >= end and not _is_constant(node)
        ]
        return cut(self.model, (), names).model


def without(model: ir.Model, nodes: list[ir.Node]) -> ir.Model | None:
    """Returns the model without these nodes of the main graph; the nodes' results become inputs. Returns None if
    nothing is left, or a type is unknown."""
    gone = {value.name for node in nodes for value in node.outputs if value.name}
    given = [value for node in nodes for value in node.outputs if value.uses()]
    if not all(_can_be_port(value) for value in given):
        return None
    outputs = [
        value.name or "" for value in model.graph.outputs if value.name not in gone and value.producer() is not None
    ]
    if not outputs:
        return None
    return cut(model, sorted(name for name in gone if name), outputs).model


def _is_constant(node: ir.Node) -> bool:
    return node.op_type == "Constant" and not node.domain


def _is_computed(value: ir.Value) -> bool:
    producer = value.producer()
    if producer is None:
        return False  # a graph input or an initializer stays what it is
    return not _is_constant(producer)


def _can_be_port(value: ir.Value) -> bool:
    return (
        isinstance(value.type, ir.TensorType)
        and value.dtype not in (None, ir.DataType.UNDEFINED)
        and (value.shape is not None)
    )
