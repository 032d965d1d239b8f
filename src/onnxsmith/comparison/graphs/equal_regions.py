"""Finds groups of unpaired nodes that compute the same tensors in both models.

For example, one model has a LayerNormalization and the other has nine nodes, or one computes a size in each layer and
the other only once. Such nodes have no partner, but the tensors before and behind them do. A region is the nodes
between certain pairs of tensors, on both sides.

A pair of tensors is certain if equal nodes compute both from paired operands, in the models themselves or in their
simplified forms. A region counts only if it is small and closed: every tensor that it reads is certain or the result of
a pair, and all its results lead to certain tensors.

Two nodes with different weights, such as a Conv and a Conv with a BatchNormalization folded into it, are no longer a
pair if both are in one region. Other nodes of the region make up for the different weights.

Nodes that compute only from stored tensors, such as the Identity of a weight, are in no region, because they compute
nothing in another way. They are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base.report.parts import model_changes as report
from onnxsmith.comparison.graphs.consistency import judged, reads_equal_constants
from onnxsmith.comparison.graphs.pairing_view import View
from onnxsmith.comparison.graphs.pairs import Pairs, Same
from onnxsmith.comparison.graphs.simplified_forms import Carried
from onnxsmith.graph.structure.walk import node_label, op_name

_MOST_NODES = 40
"""How many nodes a region may have on one side. A choice: attention with its size arithmetic has about thirty."""

Cone = tuple[list[ir.Node], list[ir.Node], tuple[ir.Value, ir.Value]]
"""The nodes of both models that compute a certain pair of tensors, and the pair."""


@dataclass(frozen=True)
class SameRegion:
    """Unpaired nodes of both models that together compute the same tensors. If one side is empty, nodes of that model
    that have partners, or are in another region, compute the same; `others` are these nodes. `ends` are the certain
    pairs of tensors in which the region ends."""

    nodes: tuple[tuple[ir.Node, ...], tuple[ir.Node, ...]]
    ends: tuple[tuple[ir.Value, ir.Value], ...]
    others: tuple[tuple[ir.Node, ...], tuple[ir.Node, ...]] = ((), ())

    def named(self, side: int) -> tuple[ir.Node, ...]:
        """Returns the nodes of one model that represent the region: its own, or else others."""
        return self.nodes[side] or self.others[side]


def counted(regions: Sequence[SameRegion]) -> dict[str, int]:
    """Counts the nodes of both models in regions, and the regions; empty without any."""
    if not regions:
        return {}
    removed, added = (sum(len(region.nodes[side]) for region in regions) for side in (0, 1))
    return {"removed": removed, "added": added, "regions": len(regions)}


def rows(regions: Sequence[SameRegion]) -> tuple[report.SameRegion, ...]:
    """Returns the regions in the form of a report, with the names of their nodes."""
    return tuple(
        report.SameRegion(
            _named(region, 0), _named(region, 1), tuple((x.name or "", y.name or "") for x, y in region.ends)
        )
        for region in regions
    )


def _named(region: SameRegion, side: int) -> tuple[report.RegionNode, ...]:
    elsewhere = not region.nodes[side]
    nodes = region.named(side)
    return tuple(report.RegionNode(node.name or node_label(node), op_name(node), elsewhere) for node in nodes)


def found(a: View, b: View, pairs: Pairs, carried: Carried) -> list[SameRegion]:
    """Returns the regions of two graphs; each node is in at most one. `carried` are pairs of tensors from the
    simplified forms of both models. Pairs of nodes with different weights inside a region are dissolved."""
    unlike = _unlike(a, b, pairs)
    sides = _Side(a, pairs, set(unlike)), _Side(b, pairs, set(unlike.values()))
    for x, y in carried.other.items():
        sides[0].borders.add(x)
        sides[1].borders.add(y)
    sure = _sure(a, b, pairs, carried)
    ends = [
        (x, y)
        for x, y in carried.equal.items()
        if x not in sure and (pairs.values.get(x, y) is y or a.producer(x) in unlike)
    ]
    for x, y in (*sure.items(), *ends):
        sides[0].end_at(x)
        sides[1].end_at(y)
    cones: list[Cone] = []
    for x, y in ends:
        first, second = sides[0].cone(x), sides[1].cone(y)
        if first is not None and second is not None:
            cones.append((first, second, (x, y)))
    cones.sort(key=lambda cone: len(cone[0]) + len(cone[1]))
    ours = sides[0].closed({node for cone, _, _ in cones for node in cone})
    theirs = sides[1].closed({node for _, cone, _ in cones for node in cone})
    regions = list(_assigned(cones, (ours, theirs), pairs, unlike))
    for region in regions:
        for one in region.nodes[0]:
            if one in pairs.nodes:
                pairs.part(one, pairs.nodes[one])
    places = [{node: at for at, node in enumerate(view.nodes)} for view in (a, b)]
    return [_in_order(region, places) for region in regions]


def _in_order(region: SameRegion, places: Sequence[Mapping[ir.Node, int]]) -> SameRegion:
    """Returns the region with its nodes in graph order."""
    nodes, others = (
        tuple(tuple(sorted(side, key=place.__getitem__)) for side, place in zip(both, places, strict=True))
        for both in (region.nodes, region.others)
    )
    return SameRegion((nodes[0], nodes[1]), region.ends, (others[0], others[1]))


def _unlike(a: View, b: View, pairs: Pairs) -> dict[ir.Node, ir.Node]:
    """Returns the pairs whose nodes have weights that differ by more than rounding."""
    same = Same(a, b, pairs)
    found = ((one, pairs.nodes[one]) for one in a.nodes if one in pairs.nodes)
    return {one: other for one, other in found if not reads_equal_constants(a, b, one, other, same)}


def _sure(a: View, b: View, pairs: Pairs, carried: Carried) -> dict[ir.Value, ir.Value]:
    """Returns the results of equal nodes that are computed only from inputs, carried tensors and other such results."""
    sure: dict[ir.Value, ir.Value] = {}
    loose: set[ir.Value] = set()
    for one, other, is_equal in judged(a, b, pairs):
        is_sure = is_equal and not any(value in loose for value in one.inputs)
        for x, y in zip(one.outputs, other.outputs, strict=False):
            if is_sure:
                sure[x] = y
            elif x not in carried.equal and x not in carried.other:
                loose.add(x)
    return sure


def _assigned(
    cones: Iterable[Cone], inside: tuple[set[ir.Node], set[ir.Node]], pairs: Pairs, unlike: Mapping[ir.Node, ir.Node]
) -> Iterator[SameRegion]:
    """Yields the regions made of the nodes `inside`. Cones with a common node become one region, as long as it is
    small. A node of two regions goes to the first. A pair of `unlike` is in a region only if both its nodes are."""
    regions: list[_Growing] = []
    place: dict[ir.Node, _Growing] = {}
    for ours, theirs, ends in cones:
        nodes = [[node for node in side if node in own] for side, own in zip((ours, theirs), inside, strict=True)]
        new = [[node for node in side if node not in place] for side in nodes]
        region = next((place[node] for side in nodes for node in side if node in place), None)
        if region is None or region.size + sum(map(len, new)) > _MOST_NODES:
            region = _Growing()
            regions.append(region)
        region.add(new, (ours, theirs), ends)
        place.update((node, region) for side in new for node in side)
    apart = {node for pair in unlike.items() if place.get(pair[0]) is not place.get(pair[1]) for node in pair}
    for region in regions:
        first, second = (tuple(node for node in side if node not in apart) for side in region.nodes)
        if first or second:
            yield SameRegion((first, second), tuple(region.ends), region.others(pairs))


@dataclass(eq=False)
class _Growing:
    """A region while cones are added to it."""

    nodes: tuple[list[ir.Node], list[ir.Node]] = field(default_factory=lambda: ([], []))
    ends: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)
    cones: tuple[dict[ir.Node, None], dict[ir.Node, None]] = field(default_factory=lambda: ({}, {}))

    @property
    def size(self) -> int:
        return sum(map(len, self.nodes))

    def add(
        self,
        nodes: Sequence[Sequence[ir.Node]],
        cones: tuple[Sequence[ir.Node], Sequence[ir.Node]],
        end: tuple[ir.Value, ir.Value],
    ) -> None:
        for own, new in zip(self.nodes, nodes, strict=True):
            own += new
        for known, cone in zip(self.cones, cones, strict=True):
            known.update(dict.fromkeys(cone))
        self.ends.append(end)

    def others(self, pairs: Pairs) -> tuple[tuple[ir.Node, ...], tuple[ir.Node, ...]]:
        """Returns the nodes in each side's cones whose partners are not in the other side's cones. If there are none,
        returns the nodes that compute the ends."""
        ours, theirs = self.cones
        back = {pairs.nodes[one]: one for one in ours if one in pairs.nodes}
        found = (
            [one for one in ours if pairs.nodes.get(one) not in theirs],
            [other for other in theirs if other not in back],
        )
        makers = [dict.fromkeys(end[side].producer() for end in self.ends) for side in (0, 1)]
        first, second = (
            tuple(own) or tuple(node for node in made if node is not None)
            for own, made in zip(found, makers, strict=True)
        )
        return first, second


@dataclass(eq=False)
class _Side:
    """One graph. `unlike` are nodes whose partners have different weights. `borders` are tensors at which a region may
    begin, `ends` tensors in which it may end."""

    view: View
    pairs: Pairs
    unlike: set[ir.Node]
    borders: set[ir.Value] = field(default_factory=set)
    ends: set[ir.Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        outer = (*self.view.outside, *self.view.graph.inputs)
        self.borders.update(value for value in outer if self.pairs.has(value))

    def end_at(self, value: ir.Value) -> None:
        """Adds a certain tensor: a region may end in it, and another may begin behind it."""
        self.borders.add(value)
        self.ends.add(value)

    def cone(self, end: ir.Value) -> list[ir.Node] | None:
        """Returns the nodes that compute a tensor from borders; None if they are too many, or read anything else."""
        first = self.view.producer(end)
        if first is None or first in self.view.of_weights:
            return None
        nodes = {first: None}
        queue = [first]
        while queue:
            node = queue.pop()
            for value in (*node.inputs, *self.view.captured.get(node, ())):
                if value is None or value in self.borders or self.view.is_of_weights(value):
                    continue
                made = self.view.producer(value)
                if made is None or len(nodes) >= _MOST_NODES:
                    return None
                if made not in nodes:
                    nodes[made] = None
                    queue.append(made)
        return list(nodes)

    def closed(self, inside: set[ir.Node]) -> set[ir.Node]:
        """Returns the nodes without a partner all of whose readers, up to certain tensors, are in regions too."""
        done: set[ir.Node] = set()
        for node in reversed(self.view.nodes):
            if node not in inside:
                continue
            if all(value in self.ends for value in node.outputs if self._is_used(value)) or self._leads(node, done):
                done.add(node)
        return {node for node in done if not self.pairs.has(node) or node in self.unlike}

    def _leads(self, node: ir.Node, done: set[ir.Node]) -> bool:
        readers = [reader for value in node.outputs for reader, _ in self.view.readers.get(value, ())]
        is_output = any(value in self.view.results and value not in self.ends for value in node.outputs)
        return bool(readers) and not is_output and all(reader in done for reader in readers)

    def _is_used(self, value: ir.Value) -> bool:
        return value in self.view.readers or value in self.view.results
