"""Pairs nodes by weights that no other node has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

import onnx_ir as ir

from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing_view import View
from onnxsmith.comparison.graphs.pairs import Pairs

_LEARNED = 8
"""Least elements of a constant that can identify a node. A choice: smaller ones are mostly shapes, axes and scales."""
_MOST_BITS = 2**31
"""Nodes times pairs up to which the order of pairs is compared: 256 MiB of bits."""


def found(a: View, b: View, pairs: Pairs) -> list[tuple[ir.Node, ir.Node]]:
    """Returns pairs of nodes with equal weights, without pairs that contradict the order of most others. So layers that
    exchanged their weights are still paired by their places."""
    ours, theirs = _unique(a, pairs), _unique(b, pairs)
    pairs_found = [(node, theirs[key]) for key, node in ours.items() if key in theirs]
    if len(pairs_found) * max(len(a.nodes), len(b.nodes)) > _MOST_BITS:
        return []
    return _in_order(a, b, pairs_found)


def _unique(view: View, pairs: Pairs) -> dict[Hashable, ir.Node]:
    """Returns the nodes whose weights no other node has, by operator and weights."""
    groups: dict[Hashable, list[ir.Node]] = defaultdict(list)
    for node in view.nodes:
        if pairs.has(node):
            continue
        learned = tuple(
            (view.slot(node, position), view.side.constants.number(value, Level.EXACT))
            for position, value in enumerate(node.inputs)
            if value is not None and view.is_stored(value) and _size(view, value) >= _LEARNED
        )
        if learned:
            groups[view.operator(node), learned].append(node)
    return {key: nodes[0] for key, nodes in groups.items() if len(nodes) == 1}


def _size(view: View, value: ir.Value) -> int:
    tensor = view.side.constants.tensor(value)
    return 0 if tensor is None else tensor.size


def _in_order(a: View, b: View, pairs: list[tuple[ir.Node, ir.Node]]) -> list[tuple[ir.Node, ir.Node]]:
    """Removes the pairs that most other pairs contradict, until no two contradict each other."""
    anchors = [(view, [pair[side] for pair in pairs]) for side, view in enumerate((a, b))]
    before, after = ([walk(*one) for one in anchors] for walk in (_before, _after))
    against = [
        (before[0][n] & after[1][n]) | (after[0][n] & before[1][n]) for n in range(len(pairs))
    ]  # pair n comes after those on one side, and before them on the other
    left = {n for n, mask in enumerate(against) if mask}
    gone: set[int] = set()
    while left:
        worst = max(against[n].bit_count() for n in left)
        if worst == 0:
            break
        # All of them: it is unknown which of two pairs that contradict each other is right.
        removed = {n for n in left if against[n].bit_count() == worst}
        mask = sum(1 << n for n in removed)
        gone |= removed
        left -= removed
        for n in left:
            against[n] &= ~mask
    return [pair for n, pair in enumerate(pairs) if n not in gone]


def _before(view: View, anchors: list[ir.Node]) -> list[int]:
    """Returns for each anchor the anchors on paths that lead to it, as bits."""
    bit = {node: 1 << n for n, node in enumerate(anchors)}
    reached: dict[ir.Node, int] = {}
    for node in view.nodes:
        mask = 0
        for value in (*node.inputs, *view.captured.get(node, ())):
            made = view.producer(value) if value is not None else None
            if made is not None:
                mask |= reached.get(made, 0) | bit.get(made, 0)
        reached[node] = mask
    return [reached[node] for node in anchors]


def _after(view: View, anchors: list[ir.Node]) -> list[int]:
    """Returns for each anchor the anchors on paths from it, as bits."""
    bit = {node: 1 << n for n, node in enumerate(anchors)}
    reached: dict[ir.Node, int] = {}
    for node in reversed(view.nodes):
        mask = 0
        for value in node.outputs:
            for reader, _ in view.readers.get(value, ()):
                mask |= reached.get(reader, 0) | bit.get(reader, 0)
        reached[node] = mask
    return [reached[node] for node in anchors]
