"""Finds nodes without a partner that compute the same as other nodes of the other model.

One model writes a LayerNormalization where the other writes nine nodes, or computes in each layer a size that the other
computes once. Such nodes have no partner, but the tensors before and behind them do: a region is what stands between
tensors that are certainly pairs, on both sides.

A tensor is certain if equal nodes compute it from paired operands, in the models as they are or in their simplified
forms. A region is counted only if it is small, if every tensor that it reads is certain or is the result of a pair, and
if all that is computed from it inside the region ends in certain tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.differences.consistency import judged
from onnxsmith.differences.pairs import Pairs
from onnxsmith.differences.simplified_forms import Carried
from onnxsmith.differences.view import View

_MOST_NODES = 40
"""Nodes of one region on one side. A choice: attention with the arithmetic of its sizes has some thirty."""

Cone = tuple[list[ir.Node], list[ir.Node], tuple[ir.Value, ir.Value]]
"""The nodes of both models that compute a certain pair of tensors, and that pair."""


@dataclass(frozen=True)
class SameRegion:
    """Nodes without a partner, of the first and of the second model, that compute the same. One side may be empty: the
    other model has a constant in their place, or nodes whose partners are elsewhere. `ends` are the certain pairs of
    tensors that the region ends in."""

    nodes: tuple[tuple[ir.Node, ...], tuple[ir.Node, ...]]
    ends: tuple[tuple[ir.Value, ir.Value], ...]


def counted(regions: Sequence[SameRegion]) -> dict[str, int]:
    """Counts the nodes of both models in regions, and the regions; empty without any."""
    if not regions:
        return {}
    removed, added = (sum(len(region.nodes[side]) for region in regions) for side in (0, 1))
    return {"removed": removed, "added": added, "regions": len(regions)}


def found(a: View, b: View, pairs: Pairs, carried: Carried) -> list[SameRegion]:
    """Returns the regions of two graphs, each node in at most one of them. `carried` are pairs of tensors by the
    simplified forms of both models."""
    sides = _Side(a, pairs), _Side(b, pairs)
    for x, y in carried.other.items():
        sides[0].borders.add(x)
        sides[1].borders.add(y)
    sure = _sure(a, b, pairs, carried)
    ends = [(x, y) for x, y in carried.equal.items() if x not in sure and pairs.values.get(x, y) is y]
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
    return list(_assigned(cones, (ours, theirs)))


def _sure(a: View, b: View, pairs: Pairs, carried: Carried) -> dict[ir.Value, ir.Value]:
    """Returns the results of equal nodes that follow from inputs and carried tensors without a gap."""
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


def _assigned(cones: Iterable[Cone], inside: tuple[set[ir.Node], set[ir.Node]]) -> Iterator[SameRegion]:
    """Yields the regions of what lies inside. Cones with a node in common are one region, as long as it is small; a
    node that belongs to two regions goes to the first."""
    regions: list[_Growing] = []
    place: dict[ir.Node, _Growing] = {}
    for ours, theirs, ends in cones:
        nodes = [[node for node in side if node in own] for side, own in zip((ours, theirs), inside, strict=True)]
        new = [[node for node in side if node not in place] for side in nodes]
        region = next((place[node] for side in nodes for node in side if node in place), None)
        if region is None or region.size + sum(map(len, new)) > _MOST_NODES:
            region = _Growing()
            regions.append(region)
        region.add(new, ends)
        place.update((node, region) for side in new for node in side)
    for region in regions:
        if region.size:
            yield SameRegion((tuple(region.nodes[0]), tuple(region.nodes[1])), tuple(region.ends))


@dataclass(eq=False)
class _Growing:
    """A region while cones are added to it."""

    nodes: tuple[list[ir.Node], list[ir.Node]] = field(default_factory=lambda: ([], []))
    ends: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(map(len, self.nodes))

    def add(self, nodes: Sequence[Sequence[ir.Node]], end: tuple[ir.Value, ir.Value]) -> None:
        for own, new in zip(self.nodes, nodes, strict=True):
            own += new
        self.ends.append(end)


@dataclass(eq=False)
class _Side:
    """One graph. `borders` are tensors that a region may begin at, `ends` those that it may end in."""

    view: View
    pairs: Pairs
    borders: set[ir.Value] = field(default_factory=set)
    ends: set[ir.Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        outer = (*self.view.outside, *self.view.graph.inputs)
        self.borders.update(value for value in outer if self.pairs.has(value))

    def end_at(self, value: ir.Value) -> None:
        """Adds a certain tensor, in which a region may end, and behind which another may begin."""
        self.borders.add(value)
        self.ends.add(value)

    def cone(self, end: ir.Value) -> list[ir.Node] | None:
        """The nodes that compute a tensor from borders; None if they are too many, or read anything else."""
        first = self.view.producer(end)
        if first is None:
            return None
        nodes = {first: None}
        queue = [first]
        while queue:
            node = queue.pop()
            for value in (*node.inputs, *self.view.captured.get(node, ())):
                if value is None or value in self.borders or self.view.is_stored(value):
                    continue
                made = self.view.producer(value)
                if made is None or len(nodes) >= _MOST_NODES:
                    return None
                if made not in nodes:
                    nodes[made] = None
                    queue.append(made)
        return list(nodes)

    def closed(self, inside: set[ir.Node]) -> set[ir.Node]:
        """The nodes without a partner that lie in regions with all that reads them, up to certain tensors."""
        done: set[ir.Node] = set()
        for node in reversed(self.view.nodes):
            if node not in inside:
                continue
            if all(value in self.ends for value in node.outputs if self._is_used(value)) or self._leads(node, done):
                done.add(node)
        return {node for node in done if not self.pairs.has(node)}

    def _leads(self, node: ir.Node, done: set[ir.Node]) -> bool:
        readers = [reader for value in node.outputs for reader, _ in self.view.readers.get(value, ())]
        is_output = any(value in self.view.results and value not in self.ends for value in node.outputs)
        return bool(readers) and not is_output and all(reader in done for reader in readers)

    def _is_used(self, value: ir.Value) -> bool:
        return value in self.view.readers or value in self.view.results
