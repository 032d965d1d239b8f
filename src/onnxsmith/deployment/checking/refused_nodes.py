"""Finds the nodes that cause the refusal of a model, by asking the target about parts of the model.

If the target accepts the first n nodes but refuses the first n + 1 nodes, node n + 1 is to blame. This node is removed
and its results become inputs. The target is then asked about the rest, until it accepts the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from onnxsmith.base.words import several
from onnxsmith.graph.structure import captures, provenance, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery.body_model import body_model
from onnxsmith.graph.surgery.graph_cuts import cut
from onnxsmith.targets.judges.base import Refusal

Ask = Callable[[ir.Model], Refusal | None]

MOST = 24
"""Ends the search after this number of culprits. A choice: a longer list helps nobody."""
_MOST_ALONE = 64
"""Limits the nodes of one operator that are asked about singly. A choice."""


@dataclass(frozen=True)
class Culprit:
    """Describes a node that the target refuses. `evidence` says how the node was found; `related` are nodes that may be
    the culprit instead, if the graph could not be cut between them."""

    label: str
    op: str
    why: str
    evidence: str
    place: str = ""
    related: tuple[str, ...] = ()


@dataclass
class Narrowed:
    """Holds the result: the refusal of the whole file, or the culprits. `rest` says whether the target accepted the
    model without the culprits; None if no node was left."""

    whole: Refusal | None = None
    culprits: list[Culprit] = field(default_factory=list)
    rest: bool | None = None
    complete: bool = True
    asked: int = 0


def narrow(model: ir.Model, ask: Ask, refusal: Refusal, *, most: int = MOST) -> Narrowed:
    """Finds the nodes of the main graph for which `ask` refuses the model. `model` needs inferred shapes. If the body
    of a node is refused, the result names the refused nodes of the body instead."""
    named, labels = labelled(model)
    found = Narrowed()

    def counted(part: ir.Model) -> Refusal | None:
        found.asked += 1
        return ask(part)

    # If even the bare inputs are refused, no node is to blame.
    shell = interface_only(named)
    said = counted(shell) if shell is not None else None
    if said is not None:
        found.whole = said
        return found
    said = counted(named)
    if said is None:  # node names, or declared shapes, which the copy does not have
        repeated = repeated_names(model)
        told = "".join(f"; {several(count, 'node')} are called {name!r}" for name, count in repeated.items())
        found.whole = replace(refusal, why=refusal.why + told)
        return found
    if not refusal.why:
        refusal = said
    _Search(named, labels, counted, found, most).run(refusal)
    return found


class _Search:
    def __init__(self, model: ir.Model, labels: dict[str, str], ask: Ask, found: Narrowed, most: int) -> None:
        self._model, self._labels, self._ask, self._found, self._most = model, labels, ask, found, most

    def run(self, refusal: Refusal) -> None:
        model: ir.Model | None = self._model
        said: Refusal | None = refusal
        while model is not None and said is not None:
            if len(self._found.culprits) >= self._most:
                self._found.complete = False
                return
            gone = self._culprits(Prefixes(model), said)
            if not gone:
                self._found.complete = False
                return
            model = without(model, gone)
            # The refusal of the rest names the next culprit; a target mostly stops at its first.
            said = self._ask(model) if model is not None and len(model.graph) else None
            if model is not None and len(model.graph):
                self._found.rest = said is None

    def _culprits(self, prefixes: Prefixes, said: Refusal) -> list[ir.Node]:
        """Returns the nodes to remove: a culprit, and nodes of its operator that are refused alone for the same
        reason."""
        region, why, evidence = self._region(prefixes, said)
        if not region:
            return []
        single = {node: self._alone(prefixes.model, node) for node in region} if len(region) > 1 else {}
        blamed = [node for node in region if single.get(node) is not None] or self._suspects(prefixes, region, why)
        for node in blamed:
            certain = len(region) == 1 or single.get(node) is not None
            others = () if certain else tuple(self._label(one) for one in region if one is not node)
            self._add(prefixes.model, node, single.get(node) or why, evidence, others)
        gone = list(blamed)
        for node in blamed:
            gone += self._alike(prefixes.model, node, gone)
        return gone

    def _suspects(self, prefixes: Prefixes, region: list[ir.Node], said: Refusal) -> list[ir.Node]:
        """Returns the nodes to blame in a region that cannot be cut, if none of its nodes is refused alone. The search
        takes the first that exists: a node that the message names, nodes of an operator that it names, nodes of a
        tensor that it names, nodes with operands or results that are no tensors, a node of another domain, the last
        node."""
        by_value = [node for node in self._guesses(prefixes, said) if node in region]
        by_name = [node for node in by_value if node.name in {*_words(said.why), *said.nodes}]
        words = set(re.findall(r"\w+", said.why))
        of_operator = [node for node in region if node.op_type in words]
        listed = [node for node in region if any(map(_is_no_tensor, (*captures.reads(node), *node.outputs)))]
        foreign = [node for node in region if node.domain not in ("", "ai.onnx")]
        return by_name[-1:] or of_operator or by_value[-1:] or listed or foreign[:1] or region[-1:]

    def _region(self, prefixes: Prefixes, said: Refusal) -> tuple[list[ir.Node], Refusal, str]:
        """Returns the nodes between the longest accepted and the shortest refused prefix, and the refusal of the
        refused prefix."""
        # Narrow by the nodes that the message names first: a right guess takes two questions, bisection many.
        ends = [0, *prefixes.ends, len(prefixes.nodes)]
        low, high, why = 0, len(ends) - 1, said
        for node in self._guesses(prefixes, said):
            index = prefixes.nodes.index(node)
            before = max((at for at, end in enumerate(ends) if end <= index), default=0)
            after = next(at for at, end in enumerate(ends) if end > index)
            if not low <= before < after <= high:
                continue
            found = self._ask_first(prefixes, ends[after]) if after != high else why
            if found is None:
                low = after
                continue
            high, why = after, found
            earlier = self._ask_first(prefixes, ends[before]) if before != low else None
            if earlier is None:
                low = before
                break
            high, why = before, earlier
        while high - low > 1:
            middle = (low + high) // 2
            found = self._ask_first(prefixes, ends[middle])
            if found is None:
                low = middle
            else:
                high, why = middle, found
        region = [node for node in prefixes.nodes[ends[low] : ends[high]] if node.op_type != "Constant" or node.domain]
        return region, why, "the model is accepted up to the node before, but refused with this node"

    def _ask_first(self, prefixes: Prefixes, end: int) -> Refusal | None:
        part = prefixes.first(end) if end < len(prefixes.nodes) else prefixes.model
        return self._ask(part) if len(part.graph) else None

    def _guesses(self, prefixes: Prefixes, said: Refusal) -> Iterator[ir.Node]:
        """Yields nodes that the message names, or that contain such a node, in the order of the graph."""
        words = _words(said.why) | set(said.nodes)
        for node in prefixes.nodes:
            if any(_names(one) & words for one in (node, *walk.inside(node))):
                yield node

    def _alone(self, model: ir.Model, node: ir.Node) -> Refusal | None:
        part = alone(model, node)
        return self._ask(part) if part is not None else None

    def _alike(self, model: ir.Model, culprit: ir.Node, gone: list[ir.Node]) -> list[ir.Node]:
        """Returns other nodes of the culprit's operator that are refused alone with the same message as the culprit
        alone."""
        others = [one for one in model.graph if one.op_identifier() == culprit.op_identifier() and one not in gone]
        said = self._alone(model, culprit) if others else None
        if said is None:
            return []
        found: list[ir.Node] = []
        for node in others[:_MOST_ALONE]:
            if len(self._found.culprits) >= self._most:
                self._found.complete = False
                break
            same = self._alone(model, node)
            if same is not None and shape_of(same.why) == shape_of(said.why):
                self._add(model, node, same, "refused alone, like another node of this operator", ())
                found.append(node)
        return found

    def _add(self, model: ir.Model, node: ir.Node, why: Refusal, evidence: str, others: tuple[str, ...]) -> None:
        inner = list(self._inside(model, node))
        if inner:
            self._found.culprits += inner
            return
        self._found.culprits.append(
            Culprit(
                self._label(node), walk.op_name(node), self._told(why.why), evidence, str(provenance.of(node)), others
            )
        )

    def _inside(self, model: ir.Model, node: ir.Node) -> Iterator[Culprit]:
        """Yields the culprits in the branches or the body of a node, if a branch or the body is refused by itself."""
        for body in walk.subgraphs(node):
            part = body_model(model, body)
            said = self._ask(part) if part.graph.outputs else None
            if said is None:
                continue
            found = narrow(part, self._ask, said, most=self._most - len(self._found.culprits))
            for one in found.culprits:
                label = self._labels.get(one.label, one.label)
                yield Culprit(f"{self._label(node)}/{label}", one.op, one.why, one.evidence, one.place, one.related)

    def _label(self, node: ir.Node) -> str:
        return self._labels.get(node.name or "", walk.node_label(node))

    def _told(self, why: str) -> str:
        """Returns the message with the labels of the original in place of the names that the nodes got for the
        question."""
        for name, label in self._labels.items():
            if name != label and name in why:
                why = why.replace(name, label)
        return why


def _words(message: str) -> set[str]:
    return set(re.findall(r"[^\s'\"(),;<>\[\]=]+", message))


def _is_no_tensor(value: ir.Value) -> bool:
    return value.type is not None and not isinstance(value.type, ir.TensorType)


def _names(node: ir.Node) -> set[str]:
    return {name for name in (node.name, *(value.name for value in node.outputs)) if name}


def shape_of(message: str) -> str:
    """Returns the message without names and numbers."""
    return re.sub(r"\S+", lambda word: "*" if re.search(r"[\d_/.:]", word[0]) else word[0], message)


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
