"""One graph of a model in the form that pairing needs: its computing nodes, the tensors they read, and the readers.

Equal numbers of a forward walk mean the same computation; equal numbers of a backward walk mean the same use. Both
walks begin at values that are known to be pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.comparison.graphs import attribute_changes
from onnxsmith.comparison.graphs.constant_recognition import Constants, is_constant
from onnxsmith.comparison.graphs.interning import Level, Numbers
from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.walk import RANDOM

Slot = int | str
"""The position of an input, or `captured` for a tensor that a branch or body reads from outside."""
CAPTURED = "captured"
_OMITTED, _UNKNOWN, _PASSED = -1, -2, -3
"""Numbers of operands: an omitted one, one computed from nothing known, and a constant that does not count."""
_OUTPUT = -1
"""Stands for the reader of a graph's output."""

_COMMUTATIVE = frozenset(
    {"Add", "Mul", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max", "Min"}
)
_OF_TWO = frozenset({"Sum", "Mean"})
"""Operators that round after each operand: only with two operands may these change places."""

_FORMS = frozenset({"Cast", "Identity", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
"""Operators whose result holds the elements of the first operand in another form (`weight_forms.py` recognises
them)."""


@dataclass(frozen=True, eq=False)
class Side:
    """The facts of one model that all its graphs share: constants, and numbers of its functions by identifier."""

    numbers: Numbers
    constants: Constants
    functions: Mapping[tuple[str, str, str], int]


@dataclass(eq=False)
class View:
    """A graph without its `Constant` nodes. `path` is "" for the main graph, `If_3/then_branch` for a branch."""

    side: Side
    graph: ir.Graph
    path: str
    opsets: Mapping[str, int]
    outside: tuple[ir.Value, ...] = ()
    """Values that a branch or body reads from outside."""
    around: View | None = None
    """The graph that contains a branch or body."""
    nodes: list[ir.Node] = field(init=False)
    captured: dict[ir.Node, tuple[ir.Value, ...]] = field(init=False)
    readers: dict[ir.Value, list[tuple[ir.Node, Slot]]] = field(init=False)
    results: frozenset[ir.Value] = field(init=False)
    is_flat: bool = field(init=False)
    """Whether no node has branches or a body."""
    of_weights: frozenset[ir.Node] = field(init=False)
    """Nodes that compute only from stored tensors, such as the Identity or the Transpose of a weight."""

    def __post_init__(self) -> None:
        self.nodes = [node for node in self.graph if not is_constant(node)]
        self.captured = {}
        readers: dict[ir.Value, list[tuple[ir.Node, Slot]]] = defaultdict(list)
        self.is_flat = walk.FLAT in self.graph.meta
        for node in self.nodes:
            for position, value in enumerate(node.inputs):
                if value is not None:
                    readers[value].append((node, position))
            if self.has_bodies(node):
                self.captured[node] = tuple(
                    value for value in captures.captured(node) if value not in self.side.constants
                )
                for value in self.captured[node]:
                    readers[value].append((node, CAPTURED))
        self.readers = dict(readers)
        self.results = frozenset(self.graph.outputs)
        self.of_weights = self._of_weights()
        self._own: dict[Level, dict[ir.Node, int]] = {level: {} for level in Level}
        self._plans: dict[Level, dict[ir.Node, Plan]] = {level: {} for level in Level}
        self._fixed: dict[Level, dict[ir.Node, int]] = {level: {} for level in Level}
        self._uses: dict[ir.Value, list[tuple[ir.Node, str]]] = {}
        self.keeps = False
        """Whether walks keep what they need of each node. The first walk does not: it needs everything of every node
        once, and most nodes have a partner after it."""
        self._operators: dict[ir.Node, Hashable] = {}
        self._names: dict[Hashable, Hashable] = {}

    def has_bodies(self, node: ir.Node) -> bool:
        """Whether the node has branches or a body."""
        return not self.is_flat and walk.has_subgraphs(node)

    def _of_weights(self) -> frozenset[ir.Node]:
        found: set[ir.Node] = set()
        for node in self.nodes:
            if not node.inputs or self.has_bodies(node) or (node.op_type in RANDOM and not node.domain):
                continue
            if all(value is None or self.is_stored(value) or value.producer() in found for value in node.inputs):
                found.add(node)
        return frozenset(found)

    def is_of_weights(self, value: ir.Value) -> bool:
        """Whether the value is a constant of the file, or computed only from constants."""
        return self.is_stored(value) or value.producer() in self.of_weights

    def operator(self, node: ir.Node) -> Hashable:
        """Returns the operator of a node. Two paired functions count as the same operator."""
        known = self._operators.get(node)
        if known is None:
            identifier = node.op_identifier()
            operator = self.side.functions.get(identifier, identifier)
            known = self._operators[node] = self._names.setdefault(operator, operator)
        return known

    def own(self, node: ir.Node, level: Level) -> int:
        """Returns the number of a node without its operands."""
        known = self._own[level].get(node)
        if known is None:
            key = attribute_changes.key(node, self.opsets) if level is not Level.BARE else None
            known = self._own[level][node] = self.side.numbers.of((self.operator(node), key))
        return known

    def plan(self, node: ir.Node, level: Level) -> Plan:
        """Returns what a walk needs of the operands of a node."""
        known = self._plans[level].get(node)
        if known is None:
            known = _plan(self, node, level)
            if self.keeps:
                self._plans[level][node] = known
        return known

    def fixed(self, node: ir.Node, level: Level) -> int:
        """Returns the number of a node with the constants that it reads. For other operands only their presence
        counts."""
        known = self._fixed[level].get(node)
        if known is None:
            known = self.side.numbers.of((self.own(node, level), _own_reads(self, node, level)))
            if self.keeps:
                self._fixed[level][node] = known
        return known

    def uses(self, value: ir.Value) -> list[tuple[ir.Node, str]]:
        """Returns the readers of a value, each with its slot as text."""
        known = self._uses.get(value)
        if known is None:
            known = [(reader, str(self.slot(reader, slot))) for reader, slot in self.readers.get(value, ())]
            if self.keeps:
                self._uses[value] = known
        return known

    def commutes(self, node: ir.Node) -> bool:
        """Whether the operands may change places without effect."""
        if node.domain:
            return False
        return node.op_type in _COMMUTATIVE or (node.op_type in _OF_TWO and len(node.inputs) == 2)

    def slot(self, node: ir.Node, slot: Slot) -> Slot:
        """Returns the slot, or "any" where the order of operands has no effect."""
        return "any" if slot != CAPTURED and self.commutes(node) else slot

    def is_stored(self, value: ir.Value) -> bool:
        """Whether the value is a constant of the file."""
        return value in self.side.constants

    def path_of(self, value: ir.Value) -> str:
        """Returns the path of the graph that contains a value: this graph, or one around it."""
        view = self
        while view.around is not None and value.graph is not view.graph:
            view = view.around
        return view.path

    def stored_behind(self, value: ir.Value | None) -> ir.Value | None:
        """Returns the constant behind a value, if it is one or holds one in another form: cast, transposed,
        reshaped."""
        while value is not None and not self.is_stored(value):
            node = value.producer()
            value = node.inputs[0] if node is not None and node.op_type in _FORMS and not node.domain else None
        return value

    def producer(self, value: ir.Value) -> ir.Node | None:
        """Returns the node of this graph that computes a value."""
        node = value.producer()
        return node if node is not None and node.graph is self.graph and not self.is_stored(value) else None

    def bodies(self, node: ir.Node) -> Iterator[tuple[str, View]]:
        """Yields the branches or the body of a node, with the attribute's name."""
        for name, graph in walk.named_subgraphs(node):
            step = f"{walk.node_label(node).removeprefix('-> ')}/{name}"
            path = f"{self.path}/{step}" if self.path else step
            yield name, View(self.side, graph, path, self.opsets, self.captured.get(node, ()), self)

    def values(self) -> Iterator[ir.Value]:
        """Yields the values that nodes can read, except constants: outer values, inputs, results."""
        yield from self.outside
        yield from self.graph.inputs
        for node in self.nodes:
            yield from node.outputs


def trimmed(node: ir.Node) -> Sequence[ir.Value | None]:
    """Returns a node's inputs without omitted ones at the end."""
    found = list(node.inputs)
    while found and found[-1] is None:
        found.pop()
    return found


Values = dict[ir.Value, int]
Nodes = dict[ir.Node, int]


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """The operands of a node as a walk reads them, at one level: the numbers of constants and omitted operands, and the
    other operands with their places among the numbers. `key` is the whole if there are no others."""

    numbers: tuple[int, ...]
    open: tuple[tuple[int, ir.Value], ...]
    commutes: bool
    has_bodies: bool
    key: Hashable


def _plan(view: View, node: ir.Node, level: Level) -> Plan:
    commutes = view.commutes(node)
    numbers: list[int] = []
    operands: list[tuple[int, ir.Value]] = []
    for value in trimmed(node):
        if value is None:
            numbers.append(_OMITTED)
        elif not view.is_stored(value):
            operands.append((len(numbers), value))
            numbers.append(_UNKNOWN)
        elif level is not Level.BARE:
            numbers.append(view.side.constants.number(value, level))
        elif not commutes:  # another version of the operator may have an attribute for it
            numbers.append(_PASSED)
    while numbers and numbers[-1] == _PASSED:
        numbers.pop()
    key = (commutes, *(sorted(numbers) if commutes else numbers))
    return Plan(tuple(numbers), tuple(operands), commutes, view.has_bodies(node), key)


def forward(view: View, seeds: Mapping[ir.Value, int], level: Level, nodes: Iterable[ir.Node]) -> tuple[Values, Nodes]:
    """Returns numbers for the computation of these nodes and their results from the values in `seeds`. The results of
    other nodes that they read have to be in `seeds`."""
    values: Values = dict(seeds)
    return values, _forward(view, nodes, values, level)


def _forward(view: View, nodes: Iterable[ir.Node], values: Values, level: Level) -> Nodes:
    numbers = view.side.numbers
    found: Nodes = {}
    for node in nodes:
        outputs = node.outputs
        if outputs and all(view.is_stored(value) for value in outputs):
            continue
        found[node] = number = numbers.of(("node", view.own(node, level), _reads(view, node, values, level)))
        passed = _passed_on(view, node, values, level) if node.op_type == "Identity" else None
        for position, value in enumerate(outputs):
            if value not in values:
                own = numbers.of(("result", number, position)) if position else number
                values[value] = own if passed is None else passed
    return found


def _passed_on(view: View, node: ir.Node, values: Values, level: Level) -> int | None:
    """Returns the number of an `Identity`'s result, which is that of its operand; None for other nodes."""
    read = node.inputs[0] if not node.domain and len(node.inputs) == 1 else None
    if read is None or not (view.is_stored(read) or read in values):
        return None
    return _number(view, read, values, level)


def _reads(view: View, node: ir.Node, values: Values, level: Level) -> Hashable:
    plan = view.plan(node, level)
    reads: Hashable = plan.key
    if plan.open:
        found = list(plan.numbers)
        for index, value in plan.open:
            found[index] = values.get(value, _UNKNOWN)
        if plan.commutes:
            found.sort()
        reads = (plan.commutes, *found)
    return (reads, _bodies(view, node, values, level)) if plan.has_bodies else reads


def _bodies(view: View, node: ir.Node, values: Values, level: Level) -> Hashable:
    found: list[Hashable] = []
    for name, graph in walk.named_subgraphs(node):
        inner = dict(_captured(view, node, values))
        for position, value in enumerate(graph.inputs):
            inner[value] = view.side.numbers.of(("body input", position))
        nodes = _forward(view, graph, inner, level)
        results = tuple(_number(view, value, inner, level) for value in graph.outputs)
        found.append((name, results, tuple(sorted(nodes.values()))))
    return tuple(found)


def _captured(view: View, node: ir.Node, values: Values) -> Values:
    """Returns the numbers of the outer values that a node's bodies read."""
    known = view.captured.get(node) or captures.captured(node)
    return {value: values[value] for value in known if value in values}


def _number(view: View, value: ir.Value, values: Values, level: Level) -> int:
    if view.is_stored(value):
        return view.side.constants.number(value, level)
    return values.get(value, _UNKNOWN)


def backward(view: View, seeds: Mapping[ir.Node, int], outputs: Mapping[ir.Value, Hashable], level: Level) -> Nodes:
    """Returns numbers for the use of each node, up to the nodes in `seeds` and the outputs of the graph."""
    numbers = view.side.numbers
    found: Nodes = dict(seeds)
    for node in reversed(view.nodes):
        if node not in found:
            used = tuple([_use(view, value, found, outputs) for value in node.outputs])
            found[node] = numbers.of(("used", view.fixed(node, level), used))
    return found


def _use(view: View, value: ir.Value, nodes: Nodes, outputs: Mapping[ir.Value, Hashable]) -> Hashable:
    uses = [(nodes.get(reader, _UNKNOWN), slot) for reader, slot in view.uses(value)]
    if value in view.results:
        uses.append((_OUTPUT, str(outputs.get(value, ""))))
    if len(uses) > 1:
        uses.sort()
    return tuple(uses)


def _own_reads(view: View, node: ir.Node, level: Level) -> Hashable:
    reads: list[Hashable] = []
    for position, value in enumerate(trimmed(node)):
        if value is not None and view.is_stored(value):
            if level is not Level.BARE:
                reads.append((view.slot(node, position), view.side.constants.number(value, level)))
        else:
            reads.append((view.slot(node, position), value is None))
    if view.commutes(node):
        reads.sort(key=str)
    bodies: Hashable = () if level is Level.BARE or not view.has_bodies(node) else _bodies(view, node, {}, level)
    return (tuple(reads), len(view.captured.get(node, ())), bodies)
