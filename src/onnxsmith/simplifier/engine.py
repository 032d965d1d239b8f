"""Runs rules on a worklist: each node is looked at once, and again only when something next to it changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

import onnx_ir as ir

from onnxsmith.model import provenance, walk
from onnxsmith.rules.base import Match, NoMatch, Rule
from onnxsmith.simplifier.journal import Journal


def apply(model: ir.Model, rules: Mapping[str, Rule], journal: Journal) -> bool:
    """Rewrites `model` in place, in subgraphs and functions too. Returns whether anything fired."""
    by_type: dict[str, list[tuple[str, Rule]]] = {}
    for id_, rule in rules.items():
        for op_type in rule.anchor:
            by_type.setdefault(op_type, []).append((id_, rule))
    queue = deque(walk.all_nodes(model))
    waiting = {id(node) for node in queue}
    fired = False
    while queue:
        node = queue.popleft()
        waiting.discard(id(node))
        if node.graph is None or node.domain:
            continue
        for id_, rule in by_type.get(node.op_type, ()):
            match = rule.match(node)
            if isinstance(match, NoMatch):
                journal.refuse(id_, match.where or walk.node_label(node), match.reason)
            if not isinstance(match, Match):
                continue
            journal.fire(id_, walk.node_label(node))
            fired = True
            for neighbour in _rewrite(rule, match, model.graph):
                if id(neighbour) not in waiting:
                    waiting.add(id(neighbour))
                    queue.append(neighbour)
            break
    return fired


def _rewrite(rule: Rule, match: Match, main: ir.Graph) -> Iterator[ir.Node]:
    """Does it, and yields the nodes that may match now."""
    old = match.node.outputs[0]
    graph = match.node.graph
    assert graph is not None
    tape = ir.tape.Tape()
    new = rule.rewrite(tape, match)
    provenance.inherit(tape.nodes, match.nodes)
    fresh = [*_constants(tape, graph, main), *tape.nodes]
    graph.insert_before(match.node, fresh)
    readers = list(old.consumers())
    _take_over(old, new)
    producers = [value.producer() for node in match.nodes for value in node.inputs if value is not None]
    for node in match.nodes:
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            graph.remove(node, safe=True)
    yield from (node for node in (*fresh, *readers, *producers) if node is not None and node.graph is not None)


def _constants(tape: ir.tape.Tape, graph: ir.Graph | ir.Function, main: ir.Graph) -> list[ir.Node]:
    """Puts new constants where the graph may have them: initializers in the main graph, Constant nodes elsewhere,
    because a function has no initializers."""
    nodes = []
    for value in tape.initializers:
        if graph is main:
            _register(main, value)
            continue
        node = ir.node("Constant", [], {"value": value.const_value})
        value.replace_all_uses_with(node.outputs[0])
        node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
        nodes.append(node)
    return nodes


def _register(graph: ir.Graph, value: ir.Value) -> None:
    name, number = value.name or "folded", 0
    while name in graph.initializers:
        number += 1
        name = f"{value.name}_{number}"
    value.name = name
    graph.register_initializer(value)


def _take_over(old: ir.Value, new: ir.Value) -> None:
    """`new` stands wherever `old` stood; a graph output keeps its name, type and declared shape."""
    if not old.is_graph_output():
        if new.shape is None:
            new.shape = old.shape
        if new.type is None:
            new.type = old.type
        name = old.name
        old.replace_all_uses_with(new)
        if new.producer() is not None and (new.name is None or new.name.startswith("val_")):
            old.name = f"{name}_replaced"
            new.name = name
        return
    name, shape, type_ = old.name, old.shape, old.type
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    old.name = f"{name}_replaced"
    new.name, new.shape, new.type = name, shape, type_
