"""Says which pairs of nodes compute equal results from equal operands."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.differences import attributes, operands
from onnxsmith.differences.interning import Level
from onnxsmith.differences.pairs import Pairs, Same
from onnxsmith.differences.view import View, has_bodies


def judged(a: View, b: View, pairs: Pairs) -> Iterator[tuple[ir.Node, ir.Node, bool]]:
    """Yields the pairs of two graphs, in the order of the first, and whether both are the same function of operands
    that are pairs, too: then the results are equal if the operands are."""
    same = Same(a, b, pairs)
    for one in a.nodes:
        other = pairs.nodes.get(one)
        if other is not None:
            yield one, other, _is_alike(a, b, one, other) and _reads_the_same(a, b, one, other, same)


def _is_alike(a: View, b: View, one: ir.Node, other: ir.Node) -> bool:
    """Whether both nodes are the same function of their operands. A node with branches or a body is not looked into:
    it is never alike."""
    if has_bodies(one) or has_bodies(other) or len(one.outputs) != len(other.outputs):
        return False
    if a.operator(one) != b.operator(other):
        return False
    if a.own(one, Level.EXACT) == b.own(other, Level.EXACT):
        return True
    moved = operands.moved(a, b, one, other)
    return not moved.changes and not any(attributes.changes(one, other, (a.opsets, b.opsets), moved.names))


def _reads_the_same(a: View, b: View, one: ir.Node, other: ir.Node, same: Same) -> bool:
    moved = operands.moved(a, b, one, other)
    for _, x, y in operands.pairs(a, b, one, other, same, moved):
        if not same(x, y):
            return False
        if x is not None and y is not None and a.is_stored(x):
            constants = a.side.constants
            if constants.number(x, Level.EXACT) != constants.number(y, Level.EXACT):
                return False
    return True
