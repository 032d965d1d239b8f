"""Groups nodes that only one of two models has into connected regions."""

from __future__ import annotations

from collections import defaultdict

import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import OwnNode, Reader, Region
from onnxsmith.comparison.graphs.pairing_view import View
from onnxsmith.graph.reading.exact_text import attribute_text, dtype_name
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.walk import node_label, op_name


class Regions:
    """The nodes without a partner, in regions. Two nodes are in one region if one reads the other's result. So are a
    removed and an added node whose results a pair of nodes reads at the same place."""

    def __init__(self) -> None:
        self._nodes: dict[ir.Node, tuple[int, View]] = {}
        self._parent: dict[ir.Node, ir.Node] = {}
        self._readers: dict[ir.Node, list[Reader]] = defaultdict(list)

    def add(self, side: int, view: View, node: ir.Node) -> None:
        """Adds a node of the first side (removed) or of the second side (added)."""
        self._nodes[node] = side, view
        self._parent[node] = node

    def __contains__(self, node: ir.Node | None) -> bool:
        return node in self._nodes

    def read(self, made: tuple[ir.Node | None, ir.Node | None], reader: Reader) -> None:
        """Notes a pair of nodes whose operand is computed by nodes without a partner, on one side or both."""
        held = [node for node in made if node is not None and node in self._nodes]
        self._readers[held[0]].append(reader)
        if len(held) == 2:
            self._join(held[0], held[1])

    def found(self) -> list[Region]:
        """Returns the regions, in the order of their first nodes."""
        for node, (_, view) in self._nodes.items():
            for value in (*node.inputs, *view.captured.get(node, ())):
                made = value.producer() if value is not None else None
                if made is not None and made in self._nodes:
                    self._join(node, made)
        groups: dict[ir.Node, list[ir.Node]] = defaultdict(list)
        for node in self._nodes:
            groups[self._root(node)].append(node)
        return [self._region(nodes) for nodes in groups.values()]

    def _region(self, nodes: list[ir.Node]) -> Region:
        views = [self._nodes[node] for node in nodes]
        sides = [
            tuple(own_node(view, node) for node, (side, view) in zip(nodes, views, strict=True) if side == wanted)
            for wanted in (0, 1)
        ]
        readers = tuple(reader for node in nodes for reader in self._readers.get(node, ()))
        return Region(views[0][1].path, sides[0], sides[1], readers)

    def _root(self, node: ir.Node) -> ir.Node:
        while self._parent[node] is not node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def _join(self, one: ir.Node, other: ir.Node) -> None:
        self._parent[self._root(other)] = self._root(one)


def own_node(view: View, node: ir.Node) -> OwnNode:
    """Describes a node that only one model has."""
    constants = [view.side.constants.tensor(v) for v in node.inputs if v is not None and view.is_stored(v)]
    return OwnNode(
        name=node.name or node_label(node),
        op=op_name(node),
        inputs=tuple(describe(view, value) if value is not None else "" for value in node.inputs),
        outputs=tuple(value.name or "" for value in node.outputs),
        attributes=tuple((name, attribute_text(one)) for name, one in node.attributes.items()),
        weights=sum(one.size for one in constants if one is not None) + _inside(view, node),
    )


def _inside(view: View, node: ir.Node) -> int:
    """Returns the number of elements of the initializers in the node's bodies."""
    graphs = walk.subgraphs(node)
    tensors = [value.const_value for graph in graphs for value in graph.initializers.values()]
    return sum(one.size for one in tensors if one is not None)


def describe(view: View, value: ir.Value | None) -> str:
    """Returns the name of an operand; for a constant, with its type."""
    if value is None:
        return "omitted"
    if not view.is_stored(value):
        return value.name or "?"
    tensor = view.side.constants.tensor(value)
    if tensor is None:
        return value.name or "?"
    return f"{value.name or 'constant'} {dtype_name(tensor.dtype)}[{','.join(map(str, tensor.shape.numpy()))}]"
