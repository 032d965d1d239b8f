"""Pairs the model-local functions of two models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.comparison.graphs import node_digests
from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing_view import Side, View
from onnxsmith.graph.reading.scopes import function_name

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


def paired(a: ir.Model, b: ir.Model, sides: tuple[Side, Side]) -> FunctionPairs:
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
    values, nodes = node_digests.forward(view, seeds, Level.EXACT)
    return tuple(values.get(value, -1) for value in function.outputs), tuple(sorted(nodes.values()))
