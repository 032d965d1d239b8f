"""Pairs nodes by the pairs around them, also across nodes that were removed or added between them."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import onnx_ir as ir

from onnxsmith.comparison.graphs import pairing_by_weights
from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing_view import CAPTURED, Slot, View
from onnxsmith.comparison.graphs.pairs import Pairs

CROWD = 16
"""How many readers a tensor may have in one role for them to be tried one by one. A choice: it keeps the work linear
for a tensor that thousands of nodes read."""
IsSame = Callable[[ir.Value | None, ir.Value | None], bool]


def around(a: View, b: View, one: ir.Node, other: ir.Node, pairs: Pairs) -> Iterator[tuple[ir.Node, ir.Node]]:
    """Yields unpaired nodes in the same position beside the nodes of a pair. They compute the same operand, or read the
    same result in the same role."""
    for ours, theirs in operand_pairs(a, b, one, other):
        first, second = a.producer(ours), b.producer(theirs)
        if first is not None and second is not None and not pairs.has(first) and not pairs.has(second):
            yield first, second
    for ours, theirs in zip(one.outputs, other.outputs, strict=False):
        yield from _readers(a, b, ours, theirs, pairs)


def operand_pairs(a: View, b: View, one: ir.Node, other: ir.Node) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Yields operands in the same position; for commutative operators, every combination."""
    ours = [value for value in one.inputs if value is not None]
    if a.commutes(one) and b.commutes(other):
        theirs = [value for value in other.inputs if value is not None]
        yield from ((x, y) for x in ours for y in theirs)
    else:
        yield from ((x, y) for x, y in zip(one.inputs, other.inputs, strict=False) if x is not None and y is not None)


def _readers(a: View, b: View, ours: ir.Value, theirs: ir.Value, pairs: Pairs) -> Iterator[tuple[ir.Node, ir.Node]]:
    first, second = _by_role(a, ours, pairs), _by_role(b, theirs, pairs)
    for role, nodes in first.items():
        others = second.get(role, [])
        if len(nodes) <= CROWD and len(others) <= CROWD:
            yield from ((x, y) for x in nodes for y in others)


def _by_role(view: View, value: ir.Value, pairs: Pairs) -> dict[tuple[Hashable, Slot], list[ir.Node]]:
    found: dict[tuple[Hashable, Slot], list[ir.Node]] = defaultdict(list)
    for reader, slot in view.readers.get(value, ()):
        if not pairs.has(reader):
            found[view.operator(reader), view.slot(reader, slot)].append(reader)
    return found


def follow(a: View, b: View, pairs: Pairs, same: IsSame, may: Callable[[ir.Node, ir.Node], bool]) -> None:
    """Pairs neighbours of pairs, the most alike first, then their neighbours. `may` says which nodes may be a pair."""
    queue: list[tuple[float, int, ir.Node, ir.Node]] = []

    def push(found: Iterable[tuple[ir.Node, ir.Node]]) -> None:
        for first, second in found:
            if may(first, second):
                score = likeness(a, b, first, second, pairs, same)
                heapq.heappush(queue, (-score, next(count), first, second))

    count = itertools.count()
    for node in a.nodes:
        if node in pairs.nodes:
            push(around(a, b, node, pairs.nodes[node], pairs))
    for value in (*a.outside, *a.graph.inputs):
        if value in pairs.values:
            push(_readers(a, b, value, pairs.values[value], pairs))
    while queue:
        _, _, first, second = heapq.heappop(queue)
        if not pairs.has(first) and not pairs.has(second):
            pairs.add(first, second)
            push(around(a, b, first, second, pairs))


def likeness(a: View, b: View, one: ir.Node, other: ir.Node, pairs: Pairs, same: IsSame) -> float:
    """Returns how much two nodes have in common: operands, readers, constants, and a little for names."""
    score = 2.0 * (a.own(one, Level.EXACT) == b.own(other, Level.EXACT))
    for x, y in zip(one.inputs, other.inputs, strict=False):
        if x is None or y is None:
            continue
        if a.is_stored(x) and b.is_stored(y):
            for level, worth in ((Level.EXACT, 2.0), (Level.SHAPED, 0.5)):
                if a.side.constants.number(x, level) == b.side.constants.number(y, level):
                    score += worth + (pairing_by_weights.cosine(a, b, x, y) if level is Level.SHAPED else 0.0)
                    break
        elif same(x, y):
            score += 1.0
    score += sum(1.0 for x, y in zip(one.outputs, other.outputs, strict=False) if _shares_reader(a, b, x, y, pairs))
    texts = zip(pairs.hints(one), pairs.hints(other), strict=True)
    return score + 0.1 * sum(bool(x) and x == y for x, y in texts)


def likeliest(
    a: View, b: View, ours: Sequence[ir.Node], theirs: Sequence[ir.Node], pairs: Pairs, same: IsSame
) -> Iterator[tuple[ir.Node, ir.Node]]:
    """Yields pairs of nodes of one group, those with the most in common first."""
    if max(len(ours), len(theirs)) > CROWD:
        return
    scores = [(-likeness(a, b, x, y, pairs, same), n, m) for n, x in enumerate(ours) for m, y in enumerate(theirs)]
    for _, n, m in sorted(scores):
        if not pairs.has(ours[n]) and not pairs.has(theirs[m]):
            yield ours[n], theirs[m]


def _shares_reader(a: View, b: View, x: ir.Value, y: ir.Value, pairs: Pairs) -> bool:
    theirs = {(node, b.slot(node, slot)) for node, slot in b.readers.get(y, ())[:CROWD]}
    readers = a.readers.get(x, ())[:CROWD]
    return any((pairs.nodes.get(node), a.slot(node, slot)) in theirs for node, slot in readers if node in pairs.nodes)


def replaced(a: View, b: View, pairs: Pairs, same: IsSame) -> None:
    """Pairs nodes of different operators that have the same operands and the same readers."""
    for one in a.nodes:
        if pairs.has(one):
            continue
        for other in dict.fromkeys(_candidates(a, b, one, pairs)):
            if _interchangeable(a, b, one, other, pairs, same):
                pairs.add(one, other)
                break


def _candidates(a: View, b: View, one: ir.Node, pairs: Pairs) -> Iterator[ir.Node]:
    for value in one.outputs:
        for reader, slot in a.readers.get(value, ())[:CROWD]:
            partner = pairs.nodes.get(reader)
            if partner is None or slot == CAPTURED:
                continue
            operands = partner.inputs if b.commutes(partner) else partner.inputs[int(slot) : int(slot) + 1]
            for operand in operands:
                made = b.producer(operand) if operand is not None else None
                if made is not None and not pairs.has(made):
                    yield made
    for read in one.inputs:
        partner_value = pairs.values.get(read) if read is not None else None
        readers = b.readers.get(partner_value, ()) if partner_value is not None else ()
        yield from (reader for reader, _ in readers[:CROWD] if not pairs.has(reader))


def _interchangeable(a: View, b: View, one: ir.Node, other: ir.Node, pairs: Pairs, same: IsSame) -> bool:
    ours = [value for value in one.inputs if value is not None and not a.is_stored(value)]
    theirs = [value for value in other.inputs if value is not None and not b.is_stored(value)]
    if (
        len(one.inputs) != len(other.inputs)
        or len(ours) != len(theirs)
        or not all(same(x, y) for x, y in zip(ours, theirs, strict=True))
    ):
        return False
    if len(one.outputs) != len(other.outputs):
        return False
    for x, y in zip(one.outputs, other.outputs, strict=True):
        readers = [(pairs.nodes[node], slot) for node, slot in a.readers.get(x, ()) if node in pairs.nodes]
        wanted = [(node, b.slot(node, slot)) for node, slot in readers]
        found = [(node, b.slot(node, slot)) for node, slot in b.readers.get(y, ())]
        if len(a.readers.get(x, ())) != len(found) or sorted(map(_order, wanted)) != sorted(map(_order, found)):
            return False
        if (x in a.results) != (y in b.results):
            return False
    return True


def _order(item: tuple[ir.Node, Slot]) -> tuple[int, str]:
    return id(item[0]), str(item[1])


_FARTHEST = 4
"""How many nodes without a partner may lie between two pairs. A choice: most rewrites replace fewer."""
_MOST = 12
"""How many nodes without a partner are examined on one side of a pair. A choice: it keeps the work linear."""
_STEP = 0.25
"""The cost of each skipped node, in shared operands. A choice: near pairs come first."""


def pair_gaps(a: View, b: View, pairs: Pairs, same: IsSame) -> None:
    """Pairs nodes of one operator that lie a few unpaired nodes away from a pair, in the same direction. Nothing may
    contradict the new pair: no operand and no reader of the two is in another pair."""
    queue: list[tuple[float, int, ir.Node, ir.Node]] = []
    count = itertools.count()

    def push(found: Iterable[tuple[int, ir.Node, ir.Node]]) -> None:
        for steps, one, other in found:
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
    """Yields unpaired nodes of one operator before or behind both nodes of a pair, with the number of nodes skipped."""
    for x, y in operand_pairs(a, b, one, other):
        if ours := _before(a, x, pairs):
            yield from _crossed(a, b, ours, _before(b, y, pairs))
    for x, y in zip(one.outputs, other.outputs, strict=False):
        if ours := _behind(a, x, pairs):
            yield from _crossed(a, b, ours, _behind(b, y, pairs))


def _crossed(
    a: View, b: View, ours: list[tuple[int, ir.Node]], theirs: list[tuple[int, ir.Node]]
) -> Iterator[tuple[int, ir.Node, ir.Node]]:
    alike: dict[int, list[tuple[int, ir.Node]]] = defaultdict(list)
    for more, other in theirs:
        alike[b.own(other, Level.BARE)].append((more, other))
    for steps, one in ours if alike else ():
        for more, other in alike.get(a.own(one, Level.BARE), ()):
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
