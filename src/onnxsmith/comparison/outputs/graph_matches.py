"""Matches the graphs of both sides before they run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.report.parts.model_changes import NodeChange, OwnNode, Region, WeightChange
from onnxsmith.comparison.graphs.graph_differences import Found
from onnxsmith.comparison.graphs.model_pairs import paired
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.by_layer.tap import Tap
from onnxsmith.verification.by_layer.tensor_pairs import STRONG, Matches, NodeDifference

_OPERATORS = 4
"""How many operators of a region a text names. A choice: one line."""
_NARROWING = ("Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
"""Operators whose rounding may excuse a loss."""
_NO_DIFFERENCE = ("rounding", "form", "unreadable")
"""Kinds of weight changes with no effect beyond rounding: the same numbers, stored in another form."""


@dataclass(frozen=True)
class Counterpart:
    """A node of the reference, and the first tensor that its counterpart in the candidate computes."""

    node: ir.Node
    output: str


@dataclass(frozen=True)
class Suspect:
    """One difference of the graphs that may cause different outputs: within a pair of nodes, or a region that only one
    graph has.

    `undo` are the candidate's nodes that have to become as in the reference, `outputs` the graph outputs that have to
    be computed as there. `node` is the node to name, and `changes` describe the difference. `is_strong` is False for
    differences that a tool may have made without any effect: other nodes, other wiring. `attributes` are the names of
    differing attributes, if nothing else differs. `narrows` says whether the nodes that only the candidate has include
    a Cast or a quantiser. `removed` and `added` are the nodes of a region, of the reference and of the candidate.
    """

    node: str
    undo: tuple[str, ...]
    changes: tuple[str, ...]
    is_strong: bool
    outputs: tuple[tuple[str, str], ...] = ()
    attributes: tuple[str, ...] = ()
    narrows: bool = False
    removed: tuple[OwnNode, ...] = ()
    added: tuple[OwnNode, ...] = ()


@dataclass(frozen=True)
class GraphMatches(Matches):
    """The matches of two graphs. `counterparts` maps names of the candidate's nodes to their counterparts."""

    counterparts: Mapping[str, Counterpart] = field(default_factory=dict)
    suspects: tuple[Suspect, ...] = ()


def matches(reference: Tap, candidate: Tap) -> GraphMatches:
    """Pairs the nodes of two graphs by their computation, their use, their weights, and their simplified forms. Names
    decide only between nodes that are otherwise alike. Nothing is matched unless both sides have a graph."""
    if not isinstance(reference, OnnxTap) or not isinstance(candidate, OnnxTap):
        return GraphMatches()
    with stage("match"), no_collection():
        _, models, _, found = paired((reference.model, candidate.model))
        weights = tuple(row for row in found.weights.changes() if row.kind not in _NO_DIFFERENCE)
        differences = _Differences(found, weights)
        differences.collect()
    counterparts = {
        node_label(other): Counterpart(one, other.outputs[0].name or "")
        for one, other in found.pairs.nodes.items()
        if one.graph is models[0].graph and other.outputs
    }
    folded = tuple(_folded(found, weights, models[0].graph))
    # Tensors that a folded pair or a region pairs are not paired a second time.
    moved = {name for pair in folded for name in pair}
    tensors = tuple(pair for pair in _tensors(found, models[0].graph) if moved.isdisjoint(pair))
    return GraphMatches(tensors, folded, tuple(differences.rows), counterparts, tuple(differences.suspects()))


def _tensors(found: Found, graph: ir.Graph) -> Iterator[tuple[str, str]]:
    for one, other in found.pairs.nodes.items():
        if one.graph is graph:
            yield from _named(zip(one.outputs, other.outputs, strict=False))


def _folded(found: Found, weights: Sequence[WeightChange], graph: ir.Graph) -> Iterator[tuple[str, str]]:
    """Yields pairs of a region's results, and of tensors behind nodes whose weights make up for nodes that only one
    model has. An example is a convolution with a normalisation folded into it."""
    for region in found.same:
        yield from _named(region.ends)
    others = {label for row in weights for label in row.readers}
    back = {other: one for one, other in found.pairs.nodes.items()}
    for one, other in found.pairs.nodes.items():
        if one.graph is not graph or node_label(one) not in others:
            continue
        if len(one.outputs) != 1 or len(other.outputs) != 1:
            continue
        x = _end(one.outputs[0], found.pairs.nodes)
        y = _end(other.outputs[0], back)
        if (x is one.outputs[0]) != (y is other.outputs[0]) and _readers_are_pairs(x, y, found.pairs.nodes):
            yield from _named([(x, y)])


def _end(value: ir.Value, partners: Mapping[ir.Node, ir.Node]) -> ir.Value:
    """Returns the last tensor of a chain of nodes without a partner, which begins with the only reader of `value`."""
    while len(value.uses()) == 1 and not value.is_graph_output():
        reader = next(iter(value.uses())).node
        if reader in partners or len(reader.outputs) != 1 or reader.graph is not value.graph:
            break
        value = reader.outputs[0]
    return value


def _readers_are_pairs(x: ir.Value, y: ir.Value, partners: Mapping[ir.Node, ir.Node]) -> bool:
    readers = {use.node for use in y.uses()}
    return (x.is_graph_output() and y.is_graph_output()) or any(partners.get(use.node) in readers for use in x.uses())


def _named(pairs: Iterable[tuple[ir.Value, ir.Value]]) -> Iterator[tuple[str, str]]:
    for x, y in pairs:
        if x.name and y.name:
            yield x.name, y.name


class _Differences:
    """The differences of nodes, by row and by suspect."""

    def __init__(self, found: Found, weights: Sequence[WeightChange]) -> None:
        self._found, self._weights = found, weights
        self._partner = {node_label(one): node_label(other) for one, other, _ in found.paths}
        self._same = {node_label(node) for region in found.same for side in region.nodes for node in side}
        self.rows: list[NodeDifference] = []
        self._regions: list[Suspect] = []

    def collect(self) -> None:
        """Fills `rows`."""
        for change in self._found.changed:
            self.rows += _changed(change)
        for weight in self._weights:
            self.rows += _weight(weight, self._partner)
        for region in self._found.regions.found():
            if not all(node.name in self._same for node in (*region.added, *region.removed)):
                self._add_region(region)

    def suspects(self) -> Iterator[Suspect]:
        """Yields the differences that can be undone, of pairs and regions. Strong ones come first."""
        groups: dict[str, list[NodeDifference]] = defaultdict(list)
        for row in self.rows:
            if row.reference and row.what != "removed":
                groups[row.node].append(row)
        found = list(self._regions)
        for node, rows in groups.items():
            rows.sort(key=lambda row: row.what not in STRONG)
            texts = tuple(dict.fromkeys(row.said() for row in rows))
            attributes = tuple(row.name for row in rows) if all(row.what == "attribute" for row in rows) else ()
            found.append(Suspect(node, (node,), texts, rows[0].what in STRONG, attributes=attributes))
        yield from sorted(found, key=lambda one: not one.is_strong)

    def _add_region(self, region: Region) -> None:
        for node in region.added:
            self.rows.append(NodeDifference(node.name, "", "added", node.op, "", ""))
        readers = [(self._partner[one.node], one) for one in region.readers if one.op and one.node in self._partner]
        if region.removed:
            self.rows += (NodeDifference(n, one.node, "removed", one.slot, one.old, one.new) for n, one in readers)
        outputs = tuple((one.old, one.new) for one in region.readers if not one.op)
        undo = tuple(dict.fromkeys(name for name, _ in readers))
        if not undo and not outputs:
            return
        named = _first_computing(region.added) or (undo[0] if undo else "")
        narrows = any(node.op in _NARROWING for node in region.added)
        texts, nodes = texts_of(region.removed, region.added), (region.removed, region.added)
        self._regions.append(Suspect(named, undo, texts, False, outputs, (), narrows, *nodes))


def _first_computing(nodes: Sequence[OwnNode]) -> str:
    """Returns the first node that does more than convert, or else the first node; "" if there is none. A node that
    dequantises a weight comes before the node that computes with it."""
    return next((node.name for node in nodes if node.op not in _NARROWING), nodes[0].name if nodes else "")


def texts_of(removed: Sequence[OwnNode], added: Sequence[OwnNode]) -> tuple[str, ...]:
    """Returns how a region differs: `MatMul, Add only in the reference`."""
    sides = (removed, "reference"), (added, "candidate")
    return tuple(f"{_counted(nodes)} only in the {side}" for nodes, side in sides if nodes)


def _counted(nodes: Sequence[OwnNode]) -> str:
    counts = Counter(node.op for node in nodes)
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.most_common(_OPERATORS))


def _changed(change: NodeChange) -> Iterator[NodeDifference]:
    ends = change.new_node, change.node
    if change.op != change.new_op:
        yield NodeDifference(*ends, "operator", "", change.op, change.new_op)
    for attribute in change.attributes:
        yield NodeDifference(*ends, "attribute", attribute.name, attribute.old, attribute.new)
    for wire in change.wiring:
        yield NodeDifference(*ends, "wiring", wire.slot, wire.old, wire.new)


def _weight(change: WeightChange, partner: dict[str, str]) -> Iterator[NodeDifference]:
    for reader in change.readers:
        if reader in partner:
            yield NodeDifference(partner[reader], reader, "weight", change.new_name, *_values(change))


def _values(change: WeightChange) -> tuple[str, str]:
    if change.old or change.new:
        return change.old, change.new
    shape, other = ([*change.shape], [*change.new_shape])
    if shape != other or change.dtype != change.new_dtype:
        return f"{change.dtype}{shape}", f"{change.dtype and change.new_dtype}{other}"
    share = f"{change.changed:.2%} of its elements differ" if change.changed is not None else "it differs"
    most = f", by at most {change.max_abs:.3g}" if change.max_abs is not None else ""
    return f"{change.dtype}{shape}", f"other values: {share}{most}"
