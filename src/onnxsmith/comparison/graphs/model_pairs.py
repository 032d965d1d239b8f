"""Pairs the nodes of two models, in all their graphs and functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.comparison.graphs import pairing_view, quantizer_pairing, unrelated
from onnxsmith.comparison.graphs.constant_recognition import Constants
from onnxsmith.comparison.graphs.graph_differences import Found, compare, pair_ports
from onnxsmith.comparison.graphs.interning import Level, Numbers
from onnxsmith.comparison.graphs.pairing import pair_nodes
from onnxsmith.comparison.graphs.pairing_view import Side, View
from onnxsmith.comparison.graphs.pairs import Pairs
from onnxsmith.comparison.graphs.simplified_forms import SimplifiedForms
from onnxsmith.comparison.graphs.weight_pairs import WeightPairs
from onnxsmith.graph.reading.scopes import function_name
from onnxsmith.graph.structure import carried_fields, walk
from onnxsmith.graph.surgery.inlining import inlined

Models = tuple[ir.Model, ir.Model]


def paired(models: Models) -> tuple[list[str], Models, FunctionPairs, Found]:
    """Pairs the nodes of both models. Functions of only one model are inlined first. So their nodes are compared with
    the nodes that replace the calls in the other model."""
    notes = _left_out(models)
    sides, pairs = _sides(models)
    inlining = pairs
    if pairs.removed or pairs.added:
        made: list[ir.Model] = []
        for model, names in zip(models, (pairs.removed, pairs.added), strict=True):
            copy, trouble = inlined(model, only=names) if names else (model, "")
            notes += [trouble] if trouble else []
            made.append(copy)
        models = made[0], made[1]
        sides, pairs = _sides(models)
        pairs = FunctionPairs(pairs.pairs, inlining.removed, inlining.added)
    found = Found(Pairs(), WeightPairs(sides[0].constants))
    for one, other in pairs.pairs:
        views = [
            view_of(side, model.functions[name]) for side, model, name in zip(sides, models, (one, other), strict=True)
        ]
        compare(views[0], views[1], found, by_name=False)
    a, b = _main(models, sides)
    for ours, theirs in quantizer_pairing.pairs_behind(models, lambda both: _of_main(both)[2]):
        found.pairs.add(ours, theirs)
    forms = SimplifiedForms(models, _of_main)
    compare(a, b, found, by_name=True, forms=forms)
    nodes = walk.count_nodes(models[0]), walk.count_nodes(models[1])
    otherwise = max(sum(len(region.nodes[side]) for region in found.same) for side in (0, 1))
    if unrelated.are_unrelated(a, b, len(found.pairs.nodes) + otherwise, nodes):
        found.unrelated = unrelated.told(len(found.pairs.nodes), *nodes)
    return notes, models, pairs, found


def _of_main(models: Models) -> tuple[View, View, Pairs]:
    """Pairs the nodes of two main graphs, without the nodes inside them."""
    sides, _ = _sides(models)
    a, b = _main(models, sides)
    pairs = Pairs()
    pair_nodes(a, b, pairs, pair_ports(a, b, pairs, by_name=True)[1])
    return a, b, pairs


def _main(models: Models, sides: tuple[Side, Side]) -> tuple[View, View]:
    one, other = (View(side, model.graph, "", model.opset_imports) for side, model in zip(sides, models, strict=True))
    return one, other


def _sides(models: Models) -> tuple[tuple[Side, Side], FunctionPairs]:
    numbers = Numbers()
    constants = Constants(numbers, models)
    plain = Side(numbers, constants, {}), Side(numbers, constants, {})
    pairs = paired_functions(*models, plain)
    ours, theirs = numbered(pairs)
    return (Side(numbers, constants, ours), Side(numbers, constants, theirs)), pairs


def _left_out(models: Models) -> list[str]:
    parts = dict.fromkeys(part for model in models for part in carried_fields.left_out(model))
    return [f"not compared, because it does not affect a run: {part}" for part in parts]


Identifier = tuple[str, str, str]


@dataclass(frozen=True)
class FunctionPairs:
    """Pairs of functions by identifier, and the identifiers of functions that only one model has."""

    pairs: tuple[tuple[Identifier, Identifier], ...]
    removed: tuple[Identifier, ...]
    added: tuple[Identifier, ...]


def view_of(side: Side, function: ir.Function) -> View:
    """Returns the body of a function as a graph."""
    return View(side, function.graph, function_name(function), function.opset_imports)


def paired_functions(a: ir.Model, b: ir.Model, sides: tuple[Side, Side]) -> FunctionPairs:
    """Pairs functions with equal names, then functions with equal bodies."""
    found = [(name, name) for name in a.functions if name in b.functions]
    left = [name for name in a.functions if name not in b.functions]
    others = {_body(sides[1], b.functions[name]): name for name in b.functions if name not in a.functions}
    for name in left:
        other = others.pop(_body(sides[0], a.functions[name]), None)
        if other is not None:
            found.append((name, other))
    ours, theirs = {one for one, _ in found}, {other for _, other in found}
    return FunctionPairs(
        tuple(found),
        tuple(name for name in a.functions if name not in ours),
        tuple(name for name in b.functions if name not in theirs),
    )


def numbered(pairs: FunctionPairs) -> tuple[Mapping[Identifier, int], Mapping[Identifier, int]]:
    """Gives both functions of a pair the same number. Returns the numbers of each side."""
    ours = {one: number for number, (one, _) in enumerate(pairs.pairs)}
    return ours, {other: ours[one] for one, other in pairs.pairs}


def _body(side: Side, function: ir.Function) -> object:
    view = view_of(side, function)
    seeds = {value: side.numbers.of(("parameter", place)) for place, value in enumerate(function.inputs)}
    values, nodes = pairing_view.forward(view, seeds, Level.EXACT, view.graph)
    return tuple(values.get(value, -1) for value in function.outputs), tuple(sorted(nodes.values()))
