"""Runs rules on a worklist: each node is visited once, and again only if a neighbour changed."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.value_replacement import can_be_output, take_over
from onnxsmith.optimizer import signature_changes
from onnxsmith.optimizer.quantiser_inputs import Quantisers
from onnxsmith.optimizer.rules import _node_order
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule, TooOld
from onnxsmith.optimizer.simplification_state import State


def apply(state: State, rules: Mapping[str, Rule], *, spare_quantisers: bool = False) -> bool:
    """Rewrites the model in place, in subgraphs and functions too. Returns whether a rule fired. With
    `spare_quantisers`, rewrites that reassociate may not change the input of a quantiser."""
    by_type: dict[str, list[tuple[str, Rule]]] = {}
    for id_, rule in rules.items():
        for op_type in rule.anchor:
            by_type.setdefault(op_type, []).append((id_, rule))
    names: Names | None = None
    spared = Quantisers(state.model) if spare_quantisers else None
    queue = deque(walk.all_nodes(state.model))
    waiting = set(queue)
    fired = False
    with state.inference.adding():
        while queue:
            node = queue.popleft()
            waiting.discard(node)
            # removed by an earlier rewrite, or no operator of ONNX
            if node.graph is None or node.domain:
                continue
            for id_, rule in by_type.get(node.op_type, ()):
                match = rule.match(node)
                if match is None:
                    continue
                match = _served(state, rule, match, node)
                if isinstance(match, NoMatch):
                    reason = signature_changes.told(match.reason, node)
                    state.journal.refuse(id_, match.place(node), reason, by_opset=isinstance(match, TooOld))
                # a quantiser may turn a difference in the last bit into a whole step
                if isinstance(match, Match) and spared is not None and rule.exactness is Exactness.REASSOCIATES:
                    reached = next((found for one in (node, *match.nodes) if (found := spared.behind(one))), None)
                    if reached is not None:
                        state.journal.refuse(
                            id_, walk.node_label(node), _SPARED.format(reached.op_type, walk.node_label(reached))
                        )
                        continue
                if isinstance(match, Match) and match.grows > state.room:
                    state.journal.refuse(id_, walk.node_label(node), _GROWS.format(match.grows))
                    continue
                if not isinstance(match, Match) or not state.journal.fire(id_, walk.node_label(node)):
                    continue
                fired = True
                state.room -= match.grows
                names = names or Names(state.model)
                for neighbour in _rewrite(state, rule, match, names, spared):
                    if neighbour not in waiting:
                        waiting.add(neighbour)
                        queue.append(neighbour)
                break
    return fired


_GROWS = "constants that other nodes also read would be stored twice: {:,} bytes, more than --max-growth leaves"


def _served(state: State, rule: Rule, match: Match | NoMatch, node: ir.Node) -> Match | NoMatch:
    """Returns the match, or a refusal if the runtime lacks a kernel for the operator that the rule makes, or would make
    at a newer opset."""
    if not rule.makes or state.kernels is None or not isinstance(match, Match | TooOld):
        return match
    # without a kernel at the newer opset, a report must not recommend that opset
    version = match.since if isinstance(match, TooOld) else facts.opset(node)
    why = state.kernels.refusal(rule.makes, version, node.outputs[0].dtype)
    return NoMatch(why, node) if why else match


_SPARED = (
    "the rewrite rounds differently, and its result reaches the {} node {}, where a small difference can become a "
    "whole step; --exactness reassociates allows it"
)


def _rewrite(state: State, rule: Rule, match: Match, names: Names, spared: Quantisers | None) -> Iterator[ir.Node]:
    """Makes the rewrite; yields the nodes at which rules may match now."""
    graph = match.node.graph
    assert graph is not None
    tape = ir.tape.Tape()
    answer = rule.rewrite(tape, match)
    constants = _constants(tape, graph, state.model, names)
    stand_ins = [node for value in constants.values() if (node := value.producer()) is not None]
    given = {match.node.outputs[0]: answer} if isinstance(answer, ir.Value) else answer
    replaced = {old: _as_output(tape, old, constants.get(new, new)) for old, new in given.items()}
    provenance.inherit(tape.nodes, match.nodes)
    fresh = [*stand_ins, *tape.nodes]
    made = [value for node in tape.nodes for value in node.outputs]
    taking = {id(value) for value in replaced.values()}
    _name([value for value in made if id(value) not in taking], match.node, names)
    graph.insert_before(match.before or match.node, fresh)
    _node_order.inserted(fresh, match.before or match.node)
    for domain in {node.domain for node in tape.nodes if node.domain}:
        graph.opset_imports.setdefault(domain, 1)  # a function has imports of its own
        state.model.opset_imports.setdefault(domain, 1)
    state.inference.add(tape.nodes)
    readers = [reader for old in replaced for reader in old.consumers()]
    for old, new in replaced.items():
        if state.inference.replace(old, new):
            state.stale.update(old.consumers())
        if spared is not None:
            spared.replaced(old, new)
        take_over(old, new, named=new in made or new in match.scaled)
    for value in match.scaled:
        _rename_scaled(replaced.get(value, value), names, keeps=value in replaced.values())
    producers = [value.producer() for node in match.nodes for value in node.inputs if value is not None]
    for node in match.nodes:
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            graph.remove(node, safe=True)
    state.journal.detail([node for node in match.nodes if node.graph is None], tape.nodes)
    yield from (node for node in (*fresh, *readers, *producers) if node is not None and node.graph is not None)


def _rename_scaled(value: ir.Value, names: Names, *, keeps: bool) -> None:
    """Renames a value that is now a multiple of its old content, so that a comparison by name does not pair both. With
    `keeps`, does not rename it, because it has taken over the name of the value that it replaces."""
    maker = value.producer()
    if maker is None or value.is_graph_output():
        return
    provenance.estrange(maker)
    if value.name and not keeps and not value.name.endswith(_SCALED):
        names.drop(value.name)
        value.name = names.free(f"{value.name}{_SCALED}")


_SCALED = "_scaled"


def _as_output(tape: ir.tape.Tape, old: ir.Value, new: ir.Value) -> ir.Value:
    """Returns `new`, or an Identity of it if `old` is a graph output and `new` cannot become one."""
    place = old.producer()
    is_made_here = new.producer() in tape.nodes
    if not old.is_graph_output() or is_made_here or (place is not None and can_be_output(new, place.graph)):
        return new
    return tape.op("Identity", [new])


_REPEATED = re.compile(r"(_[a-z]+)(?:_\d+)?\1\Z")
"""Matches a suffix that a rule adds to the name of a constant which the rule made before. In a chain of n constants the
names would have n suffixes."""


def _constants(
    tape: ir.tape.Tape, graph: ir.Graph | ir.Function, model: ir.Model, names: Names
) -> dict[ir.Value, ir.Value]:
    """Adds new constants to the graph: to the main graph as initializers, elsewhere as Constant nodes. Returns the
    results of these nodes by constant. Functions have no initializers, and before IR version 4 each initializer is an
    input."""
    made: dict[ir.Value, ir.Value] = {}
    for value in tape.initializers:
        value.name = names.free(_REPEATED.sub(r"\1", value.name or "folded"))
        if graph is model.graph and walk.has_own_initializers(model):
            model.graph.register_initializer(value)
            continue
        made[value] = result = ir.node("Constant", [], {"value": value.const_value}).outputs[0]
        value.replace_all_uses_with(result)
        result.name, result.type, result.shape = value.name, value.type, value.shape
    return made


def _name(values: Sequence[ir.Value], anchor: ir.Node, names: Names) -> None:
    """Names the intermediate values of a rewrite after the anchor's output. The names are free in every graph, so that
    no name hides another."""
    stem = anchor.outputs[0].name or anchor.op_type
    for value in values:
        maker = value.producer()
        if value.name != "":
            value.name = names.free(f"{stem}_{maker.op_type.lower() if maker is not None else 'value'}")
