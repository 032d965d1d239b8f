"""Pairs the nodes of two models, in all their graphs and functions."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.comparison.graphs import function_pairing, quantizer_pairing, unrelated
from onnxsmith.comparison.graphs.constant_recognition import Constants
from onnxsmith.comparison.graphs.function_pairing import FunctionPairs
from onnxsmith.comparison.graphs.graph_differences import Found, compare, pair_ports
from onnxsmith.comparison.graphs.interning import Numbers
from onnxsmith.comparison.graphs.pairing import pair_nodes
from onnxsmith.comparison.graphs.pairing_view import Side, View
from onnxsmith.comparison.graphs.pairs import Pairs
from onnxsmith.comparison.graphs.simplified_forms import SimplifiedForms
from onnxsmith.comparison.graphs.weight_pairs import WeightPairs
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
            function_pairing.view_of(side, model.functions[name])
            for side, model, name in zip(sides, models, (one, other), strict=True)
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
    pairs = function_pairing.paired(*models, plain)
    ours, theirs = function_pairing.numbered(pairs)
    return (Side(numbers, constants, ours), Side(numbers, constants, theirs)), pairs


def _left_out(models: Models) -> list[str]:
    parts = dict.fromkeys(part for model in models for part in carried_fields.left_out(model))
    return [f"not compared, because no run needs it: {part}" for part in parts]
