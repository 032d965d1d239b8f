"""Finds places of a model that nearly match a pattern, and explains the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.near_names import near_names
from onnxsmith.graph.patterns.match_rating import Rater, Rating
from onnxsmith.graph.patterns.match_search import Search
from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_conversion import pattern_of
from onnxsmith.graph.patterns.pattern_search import may_end_at, scopes, ways
from onnxsmith.graph.patterns.search_plan import Plan
from onnxsmith.graph.structure import walk


@dataclass(frozen=True)
class NearMiss:
    """A place that nearly matches: the node, how many operators match there, how many the pattern has, and the
    differences. Without a node, `notes` say which operators the model lacks."""

    node: ir.Node | None
    matched: int
    total: int
    notes: tuple[str, ...]

    def __str__(self) -> str:
        notes = "; ".join(self.notes)
        if self.node is None:
            return notes
        label = walk.node_label(self.node)
        if self.matched == self.total:
            return f"{label}: matches except for {notes}"
        return f"{label}: {self.matched} of {self.total} operators match; {notes}"


def near_misses(model: ir.Model, pattern: Pattern | str | Callable[..., Any], *, most: int = 3) -> list[NearMiss]:
    """Returns the `most` places that nearly match, the nearest first. Places that match are left out. If less than half
    of the operators match everywhere, returns one entry that says which operators the model lacks.

    Raises:
        OnnxsmithError: a `pattern/…` problem.
    """
    plan = Plan(pattern_of(pattern))
    found: list[tuple[tuple[float, ...], NearMiss]] = []
    matches = False
    for graph, imports in scopes(model):
        rater, search = Rater(plan, imports), Search(plan, imports)
        whole = {node for node in walk.nodes(graph) if may_end_at(plan, node) and any(ways(plan, search, node))}
        matches = matches or bool(whole)
        found += ((rating.rank, _told(node, rating)) for node, rating in _rated(plan, rater, graph, whole))
    # with less than half of the operators the place is no near miss
    found = [one for one in found if one[1].matched * 2 >= one[1].total]
    found.sort(key=lambda one: one[0], reverse=True)
    if not found and not matches:
        return [_absent(model, plan)]
    return [one for _, one in found[:most]]


def _rated(
    plan: Plan, rater: Rater, graph: ir.Graph | ir.Function, whole: set[ir.Node]
) -> Iterator[tuple[ir.Node, Rating]]:
    """Yields places and their ratings: first nodes that may be the pattern's result, then nodes that may be inner nodes
    and belong to no earlier place."""
    by_type: dict[tuple[str, str], list[ir.Node]] = {}
    for node in walk.nodes(graph):
        by_type.setdefault((node.domain, node.op_type), []).append(node)
    covered: set[tuple[int, ir.Node]] = set()
    roots = {anchor.node for anchor in plan.anchors}
    first = sorted(roots, reverse=True)
    inner = [index for index in reversed(range(len(plan.pattern.nodes))) if index not in roots]
    for index in (*first, *inner):
        wanted = plan.pattern.nodes[index]
        for node in by_type.get((wanted.domain, wanted.op_type), ()):
            if (index, node) in covered:
                continue
            rating = rater.at(index, node)
            covered.update(rating.nodes.items())
            if node not in whole or index not in roots:
                yield node, _completed(plan, rater, index, node, rating)


def _completed(plan: Plan, rater: Rater, index: int, node: ir.Node, rating: Rating) -> Rating:
    """Adds to the rating of an inner node what is missing around it: the operator that would read it, or a further
    result."""
    notes, missing = rating.notes, rating.missing
    roots = {anchor.node for anchor in plan.anchors}
    if index not in roots:
        missing += max(rater.size(root) for root in roots) - rater.size(index)
        reader = next((other for other in plan.readers(index)), None)
        if reader is not None:
            title = plan.pattern.nodes[reader].title
            notes = (*notes, f"no {title} reads {walk.node_label(node)}")
    elif not notes and len(plan.pattern.outputs) > 1:
        others = {plan.title(output) for output in plan.pattern.outputs[1:]}
        missing += len(plan.pattern.nodes) - len(rating.nodes)
        notes = (f"no {' and '.join(sorted(others))} has the same operands",)
    return Rating(rating.nodes, rating.bindings, missing, rating.agreeing, notes)


def _told(node: ir.Node, rating: Rating) -> NearMiss:
    return NearMiss(node, len(rating.nodes), len(rating.nodes) + rating.missing, rating.notes)


def _absent(model: ir.Model, plan: Plan) -> NearMiss:
    """Says which operators of the pattern the model lacks, with the most similar one that it has."""
    have = set(walk.histogram(model))
    wanted = dict.fromkeys(node.title for node in plan.pattern.nodes if node.op_type)
    notes = []
    for title in wanted:
        if title not in have:
            near = near_names(title, have, 1)
            notes.append(f"the model has no {title}" + (f" (it has {near[0]})" if near else ""))
    total = len(plan.pattern.nodes)
    return NearMiss(None, 0, total, tuple(notes) or ("less than half of the operators match at any node",))
