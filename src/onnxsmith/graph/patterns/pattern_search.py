"""Finds a pattern in a model: in its main graph, in branches and bodies, and in functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.patterns.match import Match
from onnxsmith.graph.patterns.match_search import Search, Way
from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_conversion import pattern_of
from onnxsmith.graph.patterns.search_plan import Plan
from onnxsmith.graph.structure import walk


def find(
    model: ir.Model,
    pattern: Pattern | str | Callable[..., Any],
    *,
    overlapping: bool = False,
    allowed: Callable[[Match], bool] | None = None,
    looks_at: Collection[str] = (),
) -> list[Match]:
    """Returns the places where the model has the pattern, in the order of the model's nodes.

    Matches do not overlap: a node that replacing one match would remove is in no other match, and earlier matches win.
    With `overlapping`, returns the first match of each node that makes the pattern's first result. With `allowed`, only
    matches for which it returns True count. At each node it is called for the ways to match that differ in the names in
    `looks_at`.

    Raises:
        OnnxsmithError: a `pattern/…` problem; `model/not-given` for a path or another object that is no model.
    """
    other: object = model
    if not isinstance(other, ir.Model):
        given = repr(other) if isinstance(other, str) else f'"{other}"' if isinstance(other, Path) else "model"
        raise problem(
            "model/not-given",
            f"{type(other).__module__}.{type(other).__qualname__} is no loaded model",
            why="the matches hold nodes of the model that was given",
            fix=f"write find(onnxsmith.load({given}), pattern)",
        )
    plan = Plan(pattern_of(pattern), looks_at)
    found: list[Match] = []
    for graph, imports in scopes(model):
        search = Search(plan, imports)
        for node in walk.nodes(graph):
            if not may_end_at(plan, node):
                continue
            match = next((one for one in ways(plan, search, node) if allowed is None or allowed(one)), None)
            if match is not None:
                found.append(match)
                if not overlapping:
                    search.block(match.removable)
    return found


def scopes(model: ir.Model) -> Iterator[tuple[ir.Graph | ir.Function, Mapping[str, int]]]:
    """Yields the main graph and the functions, with the opset versions that they import."""
    yield model.graph, model.opset_imports
    for function in model.functions.values():
        yield function, function.opset_imports


def may_end_at(plan: Plan, node: ir.Node) -> bool:
    """Whether the node has the operator of the pattern's first result."""
    return (node.domain, node.op_type) in plan.anchor_types or ("", "") in plan.anchor_types


def every_match(plan: Plan, node: ir.Node) -> Iterator[Match]:
    """Yields the matches whose first result the node makes, and whose nodes are all in the node's graph. Yields all of
    them if the plan keeps all names apart. Leaves `kept` empty."""
    assert node.graph is not None
    for way, outputs in Search(plan, node.graph.opset_imports, node.graph).ways(node):
        yield _match(plan.pattern, way, outputs)


def ways(plan: Plan, search: Search, node: ir.Node) -> Iterator[Match]:
    """Yields the matches in which the node makes the pattern's first result."""
    for way, outputs in search.ways(node):
        found = _match(plan.pattern, way, outputs)
        nodes = [one for one in found.nodes if one is not None]
        yield replace(found, kept=kept(nodes, outputs, found.graph))


def _match(pattern: Pattern, way: Way, outputs: tuple[ir.Value, ...]) -> Match:
    nodes = tuple(way.get(index) for index in range(len(pattern.nodes)))
    node = outputs[0].producer()
    assert node is not None
    assert node.graph is not None
    return Match(
        pattern,
        node.graph,
        nodes,
        {one.name: way[one.name] for one in pattern.variables if one.name in way},
        {key[0]: value for key, value in way.items() if isinstance(key, tuple)},
        outputs,
    )


# Finds the nodes of a match that stay in use when its results are replaced.


def kept(nodes: Sequence[ir.Node], outputs: Collection[ir.Value], graph: ir.Graph | ir.Function) -> tuple[ir.Node, ...]:
    """Returns the nodes that are still needed without the `outputs`. A node is needed if a result of it is a graph
    output, or is read by a needed node or by a node outside the match. A node of an outer graph is always needed.
    `nodes` are in the order of the pattern."""
    inside = dict.fromkeys(nodes)
    found: dict[ir.Node, None] = {}
    for node in reversed(inside):
        if node.graph is not graph or any(
            value.is_graph_output() or any(one not in inside or one in found for one in value.consumers())
            for value in node.outputs
            if value not in outputs
        ):
            found[node] = None
    return tuple(node for node in inside if node in found)
