"""Compares two graphs whose nodes are paired, and the branches and bodies in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import (
    AttributeChange,
    NodeChange,
    OwnNode,
    PortChange,
    Reader,
    Region,
    WeightChange,
    WiringChange,
)
from onnxsmith.comparison.graphs import attribute_changes, consistency, equal_regions, ports, unrelated
from onnxsmith.comparison.graphs.constant_recognition import is_constant
from onnxsmith.comparison.graphs.equal_regions import SameRegion
from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing import pair_nodes
from onnxsmith.comparison.graphs.pairing_view import View
from onnxsmith.comparison.graphs.pairs import Pairs, Same
from onnxsmith.comparison.graphs.ports import Dimensions, Pair
from onnxsmith.comparison.graphs.simplified_forms import SimplifiedForms
from onnxsmith.comparison.graphs.weight_pairs import WeightPairs, own
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


@dataclass
class Found:
    """The differences of two models, while they are collected."""

    pairs: Pairs
    weights: WeightPairs
    regions: Regions = field(default_factory=Regions)
    dimensions: Dimensions = field(default_factory=Dimensions)
    changed: list[NodeChange] = field(default_factory=list)
    interface: list[PortChange] = field(default_factory=list)
    unread: list[WeightChange] = field(default_factory=list)
    moved: int = 0
    """The number of parameters that are an attribute on one side and an equal input on the other."""
    idle: int = 0
    """The number of weights that nodes of only one model read, and that the other stores unused."""
    swapped: int = 0
    """The number of commutative nodes with operands in another order."""
    paths: list[tuple[ir.Node, ir.Node, str]] = field(default_factory=list)
    """The pairs of nodes, with their graphs."""
    changes: dict[ir.Node, NodeChange] = field(default_factory=dict)
    """The change of each paired node that changed, by the first model's node."""
    same: list[SameRegion] = field(default_factory=list)
    """Groups of unpaired nodes that compute the same tensors in both models."""
    nested: list[int] = field(default_factory=lambda: [0, 0])
    """The number of nodes in branches and bodies that only the first model, or only the second, has."""
    unrelated: str = ""
    """The sentence for two models that have almost nothing in common; "" for others."""
    of_weights: tuple[list[ir.Node], list[ir.Node]] = field(default_factory=lambda: ([], []))
    """Nodes without a partner, of the first and of the second model, that compute only from stored tensors."""


def pair_ports(a: View, b: View, pairs: Pairs, *, by_name: bool) -> tuple[list[Pair], list[Pair]]:
    """Returns the pairs of inputs, which are added to `pairs`, and the pairs of outputs."""
    inputs = ports.paired(_inputs(a), _inputs(b), by_name=by_name)
    for one, other in inputs:
        pairs.add_values(one, other)
    return inputs, ports.paired(a.graph.outputs, b.graph.outputs, by_name=by_name)


def _inputs(view: View) -> list[ir.Value]:
    return [value for value in view.graph.inputs if not view.is_stored(value)]


def compare(a: View, b: View, found: Found, *, by_name: bool, forms: SimplifiedForms | None = None) -> None:
    """Compares two graphs and the graphs inside them. `by_name` says that callers of the graph use the names of its
    ports. `forms` are the simplified forms of two main graphs."""
    ours, theirs = _inputs(a), _inputs(b)
    inputs, outputs = pair_ports(a, b, found.pairs, by_name=by_name)
    pair_nodes(a, b, found.pairs, outputs, forms)
    if forms is not None:
        unrelated.part_weak(a, b, found.pairs)
    if forms is not None and forms.are_worth_it(len(found.pairs.nodes)):
        found.same = equal_regions.found(a, b, found.pairs, forms.tensors)
    sides = ("input", ours, theirs, inputs), ("output", a.graph.outputs, b.graph.outputs, outputs)
    for side, first, second, pairs in sides:
        found.interface += (
            change
            for change in ports.changes(side, first, second, pairs, a.path, found.dimensions)
            if by_name or change.kind != "renamed"
        )
    if by_name:
        found.interface += ports.defaults(*([v for v in one.graph.inputs if one.is_stored(v)] for one in (a, b)))
    _Comparison(a, b, found).run(outputs)


class _Comparison:
    def __init__(self, a: View, b: View, found: Found) -> None:
        self._a, self._b, self._found = a, b, found
        self._same = Same(a, b, found.pairs)

    def run(self, outputs: Sequence[Pair]) -> None:
        pairs = self._found.pairs
        for side, view in enumerate((self._a, self._b)):
            for node in view.nodes:
                if not pairs.has(node):
                    self._found.regions.add(side, view, node)
                    self._found.nested[side] += sum(not is_constant(inner) for inner in walk.inside(node))
                    if node in view.of_weights:
                        self._found.of_weights[side].append(node)
                    for value in node.inputs:
                        if value is not None and view.is_stored(value):
                            self._found.weights.add_own(side, view.path_of(value), value, _label(node))
        for one in self._a.nodes:
            if one in pairs.nodes:
                self._node(one, pairs.nodes[one])
        for first, second in outputs:
            self._output(first, second)
        self._unread()

    def _node(self, one: ir.Node, other: ir.Node) -> None:
        a, b = self._a, self._b
        self._found.paths.append((one, other, a.path))
        moved = consistency.moved_operands(a, b, one, other)
        self._found.moved += len(moved.names) - len(moved.changes)
        changed = [*attribute_changes.changes(one, other, (a.opsets, b.opsets), moved.names), *moved.changes]
        changed += self._bodies(one, other)
        wiring: list[WiringChange] = []
        is_swapped = False
        for position, x, y in consistency.operand_pairs(a, b, one, other, self._same, moved):
            is_swapped = is_swapped or (position < len(other.inputs) and y is not other.inputs[position])
            if not self._weights(x, y, _label(one)) and not self._same(x, y):
                slot = consistency.slot_name(one, position, a.opsets)
                wiring += self._rewired(x, y, Reader(_label(one), op_name(one), slot, "", ""))
        wiring += _outputs(one, other)
        if not moved.names:
            self._found.swapped += is_swapped
        old, new = op_name(one), op_name(other)
        is_other = old != new and a.operator(one) != b.operator(other)
        if changed or wiring or is_other:
            new = new if is_other else old
            change = NodeChange(a.path, _label(one), _label(other), old, new, tuple(changed), tuple(wiring))
            self._found.changes[one] = change
            self._found.changed.append(change)

    def _rewired(self, x: ir.Value | None, y: ir.Value | None, reader: Reader) -> list[WiringChange]:
        """Returns the wiring change for two operands that differ, unless a region explains it."""
        a, b = self._a, self._b
        old, new = describe(a, x), describe(b, y)
        made = _producer(a, x), _producer(b, y)
        if any(node in self._found.regions for node in made):
            self._found.regions.read(made, replace(reader, old=old, new=new))
            return []
        return [WiringChange(reader.slot, old, new)]

    def _weights(self, x: ir.Value | None, y: ir.Value | None, reader: str) -> bool:
        """Adds the pair of weights, if an operand is a weight on both sides, or becomes one by a Cast on one side.
        Returns whether both operands are weights themselves."""
        a, b = self._a, self._b
        if x is None or y is None:
            return False
        is_direct = a.is_stored(x), b.is_stored(y)
        if any(is_direct) and (one := a.stored_behind(x)) is not None and (other := b.stored_behind(y)) is not None:
            self._found.weights.add(a.path_of(one), one, other, reader)
        return all(is_direct)

    def _output(self, one: ir.Value, other: ir.Value) -> None:
        name = one.name or ""
        if self._weights(one, other, name) or self._same(one, other):
            return
        if self._rewired(one, other, Reader(name, "", "output", "", "")):
            made = [_made_by(one), _made_by(other)]
            text = WiringChange("output", *made)
            change = NodeChange(self._a.path, one.name or "", other.name or "", "", "", (), (text,))
            self._found.changed.append(change)

    def _bodies(self, one: ir.Node, other: ir.Node) -> list[AttributeChange]:
        """Compares the branches and bodies of two nodes. Returns those that only one of the nodes has."""
        ours, theirs = dict(self._a.bodies(one)), dict(self._b.bodies(other))
        for name in ours:
            if name in theirs:
                compare(ours[name], theirs[name], self._found, by_name=False)
        for side, mine, others in ((0, ours, theirs), (1, theirs, ours)):
            alone = [view.graph for name, view in mine.items() if name not in others]
            self._found.nested[side] += sum(not is_constant(node) for graph in alone for node in walk.nodes(graph))
        return [
            AttributeChange(name, "graph" if name in ours else "-", "graph" if name in theirs else "-")
            for name in dict.fromkeys((*ours, *theirs))
            if (name in ours) != (name in theirs)
        ]

    def _unread(self) -> None:
        """Compares initializers that no node reads, by name. An initializer that nodes of the other model read is no
        difference."""
        ours, theirs = (_unread_in(view) for view in (self._a, self._b))
        for name in ours.keys() & theirs.keys():
            self._found.weights.add(self._a.path, ours[name], theirs[name], "")
        self._unread_of(self._a, self._b, {name: v for name, v in ours.items() if name not in theirs}, "removed")
        self._unread_of(self._b, self._a, {name: v for name, v in theirs.items() if name not in ours}, "added")

    def _unread_of(self, view: View, other: View, unread: dict[str, ir.Value], kind: str) -> None:
        constants = view.side.constants
        for value in unread.values():
            if constants.has(constants.number(value, Level.EXACT), other.graph):
                self._found.idle += 1
            else:
                self._found.unread.append(own(value, constants.tensor(value), kind, view.path))


def _unread_in(view: View) -> dict[str, ir.Value]:
    values = view.graph.initializers.values()
    return {v.name or "": v for v in values if not v.uses() and not v.is_graph_output()}


def _producer(view: View, value: ir.Value | None) -> ir.Node | None:
    return value.producer() if value is not None and not view.is_stored(value) else None


def _label(node: ir.Node) -> str:
    return node_label(node)


def _made_by(value: ir.Value) -> str:
    node = value.producer()
    return f"{op_name(node)} {_label(node)}" if node is not None else f"input {value.name}"


def _outputs(one: ir.Node, other: ir.Node) -> list[WiringChange]:
    """Returns the results that only one of the nodes computes."""
    ours, theirs = list(one.outputs), list(other.outputs)
    found = []
    for n in range(max(len(ours), len(theirs))):
        old = ours[n].name if n < len(ours) else ""
        new = theirs[n].name if n < len(theirs) else ""
        if bool(old) != bool(new):
            found.append(WiringChange(f"output {n}", old or "omitted", new or "omitted"))
    return found
