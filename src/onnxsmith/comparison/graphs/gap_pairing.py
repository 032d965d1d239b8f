"""Pairs nodes across nodes that were removed or added between them."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator

import onnx_ir as ir

from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.neighbours import CROWD, IsSame, likeness, operand_pairs
from onnxsmith.comparison.graphs.pairing_view import CAPTURED, View
from onnxsmith.comparison.graphs.pairs import Pairs

_FARTHEST = 4
"""How many nodes without a partner may lie between two pairs. A choice: most rewrites replace fewer."""
_MOST = 12
"""How many nodes without a partner are examined on one side of a pair. A choice: it keeps the work linear."""
_STEP = 0.25
"""The cost of each skipped node, in shared operands. A choice: near pairs come first."""


def pair(a: View, b: View, pairs: Pairs, same: IsSame) -> None:
    """Pairs nodes of one operator that lie a few unpaired nodes away from a pair, in the same direction. Nothing may
    contradict the new pair: no operand and no reader of the two is in another pair."""
    queue: list[tuple[float, int, ir.Node, ir.Node]] = []
    count = itertools.count()

    def push(found: Iterable[tuple[int, ir.Node, ir.Node]]) -> None:
        for steps, one, other in found:
            if a.own(one, Level.BARE) == b.own(other, Level.BARE):
                score = likeness(a, b, one, other, pairs, same) - _STEP * steps
                heapq.heappush(queue, (-score, next(count), one, other))

    for node in a.nodes:
        if node in pairs.nodes:
            push(_near(a, b, node, pairs.nodes[node], pairs))
    while queue:
        _, _, one, other = heapq.heappop(queue)
        if not pairs.has(one) and not pairs.has(other) and _is_consistent(a, b, one, other, pairs, same):
            pairs.add(one, other)
            push(_near(a, b, one, other, pairs))


def _near(a: View, b: View, one: ir.Node, other: ir.Node, pairs: Pairs) -> Iterator[tuple[int, ir.Node, ir.Node]]:
    """Yields unpaired nodes before or behind both nodes of a pair, with the number of nodes skipped."""
    for x, y in operand_pairs(a, b, one, other):
        yield from _crossed(_before(a, x, pairs), _before(b, y, pairs))
    for x, y in zip(one.outputs, other.outputs, strict=False):
        yield from _crossed(_behind(a, x, pairs), _behind(b, y, pairs))


def _crossed(
    ours: list[tuple[int, ir.Node]], theirs: list[tuple[int, ir.Node]]
) -> Iterator[tuple[int, ir.Node, ir.Node]]:
    for (steps, one), (more, other) in itertools.product(ours, theirs):
        yield steps + more, one, other


def _before(view: View, value: ir.Value, pairs: Pairs) -> list[tuple[int, ir.Node]]:
    """Returns the unpaired nodes that compute a value, nearest first, up to paired nodes."""
    found: dict[ir.Node, int] = {}
    queue = [(0, value)]
    while queue and len(found) < _MOST:
        steps, read = queue.pop(0)
        node = view.producer(read)
        if node is None or pairs.has(node) or node in found or steps > _FARTHEST:
            continue
        found[node] = steps
        queue += [(steps + 1, one) for one in node.inputs if one is not None]
    return [(steps, node) for node, steps in found.items()]


def _behind(view: View, value: ir.Value, pairs: Pairs) -> list[tuple[int, ir.Node]]:
    """Returns the unpaired nodes that read a value, and those behind them, nearest first, up to paired nodes."""
    found: dict[ir.Node, int] = {}
    queue = [(0, value)]
    while queue and len(found) < _MOST:
        steps, made = queue.pop(0)
        for node, _ in view.readers.get(made, ())[:CROWD]:
            if not pairs.has(node) and node not in found and steps <= _FARTHEST:
                found[node] = steps
                queue += [(steps + 1, one) for one in node.outputs]
    return [(steps, node) for node, steps in found.items()]


def _is_consistent(a: View, b: View, one: ir.Node, other: ir.Node, pairs: Pairs, same: IsSame) -> bool:
    """Whether every operand and every reader of both nodes fits, or has no partner yet."""
    if len(one.outputs) != len(other.outputs):
        return False
    for x, y in zip(one.inputs, other.inputs, strict=False) if not a.commutes(one) else ():
        if x is not None and y is not None and not same(x, y) and not (_is_open(a, x, pairs) or _is_open(b, y, pairs)):
            return False
    if a.commutes(one) and not _commutes_consistently(a, b, one, other, pairs, same):
        return False
    for x, y in zip(one.outputs, other.outputs, strict=True):
        for reader, slot in a.readers.get(x, ()):
            partner = pairs.nodes.get(reader)
            if partner is None or slot == CAPTURED:
                continue
            reads = partner.inputs if b.commutes(partner) else partner.inputs[int(slot) : int(slot) + 1]
            if y not in reads and not any(read is not None and _is_open(b, read, pairs) for read in reads):
                return False
    return True


def _commutes_consistently(a: View, b: View, one: ir.Node, other: ir.Node, pairs: Pairs, same: IsSame) -> bool:
    """Whether the paired operands of each node occur in the other node, or could be computed by an unpaired node
    there."""
    ours, theirs = ([value for value in node.inputs if value is not None] for node in (one, other))
    open_here = sum(_is_open(a, value, pairs) for value in ours)
    open_there = sum(_is_open(b, value, pairs) for value in theirs)
    lonely = sum(not _is_open(a, x, pairs) and not any(same(x, y) for y in theirs) for x in ours)
    other_lonely = sum(not _is_open(b, y, pairs) and not any(same(x, y) for x in ours) for y in theirs)
    return lonely <= open_there and other_lonely <= open_here


def _is_open(view: View, value: ir.Value, pairs: Pairs) -> bool:
    """Whether the value is computed by a node without a partner."""
    node = view.producer(value)
    return node is not None and not pairs.has(node)
