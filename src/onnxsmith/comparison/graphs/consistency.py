"""Decides which pairs of nodes compute equal results from equal operands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.comparison.graphs import attribute_changes, operand_differences, rounded_weights
from onnxsmith.comparison.graphs.constant_recognition import Constants
from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing_view import View
from onnxsmith.comparison.graphs.pairs import Pairs, Same
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk


def judged(
    a: View, b: View, pairs: Pairs, symbols: frozenset[str] | None = None
) -> Iterator[tuple[ir.Node, ir.Node, bool]]:
    """Yields the pairs of two graphs, in the order of the first, and whether both nodes are the same function of paired
    operands. Then the results are equal if the operands are.

    `symbols` are names of dimensions that mean the same in both graphs, if known. With them, a Reshape or Expand of one
    tensor to one shape counts as the same, however the shape was computed.
    """
    same = Same(a, b, pairs)
    for one in a.nodes:
        other = pairs.nodes.get(one)
        if other is not None:
            is_equal = _is_alike(a, b, one, other) and _reads_the_same(a, b, one, other, same)
            yield one, other, is_equal or (symbols is not None and _is_shaped_alike(a, b, one, other, same, symbols))


def _is_alike(a: View, b: View, one: ir.Node, other: ir.Node) -> bool:
    """Whether both nodes are the same function of their operands. Nodes with branches or a body are never alike,
    because these are not compared here."""
    if walk.has_subgraphs(one) or walk.has_subgraphs(other) or len(one.outputs) != len(other.outputs):
        return False
    if a.operator(one) != b.operator(other):
        return False
    if a.own(one, Level.EXACT) == b.own(other, Level.EXACT):
        return True
    moved = operand_differences.moved(a, b, one, other)
    return not moved.changes and not any(attribute_changes.changes(one, other, (a.opsets, b.opsets), moved.names))


def _reads_the_same(a: View, b: View, one: ir.Node, other: ir.Node, same: Same) -> bool:
    moved = operand_differences.moved(a, b, one, other)
    for _, x, y in operand_differences.pairs(a, b, one, other, same, moved):
        if not same(x, y):
            return False
        if x is not None and y is not None and a.is_stored(x) and not _holds_the_same(a.side.constants, x, y):
            return False
    return True


def reads_equal_constants(a: View, b: View, one: ir.Node, other: ir.Node, same: Same) -> bool:
    """Whether two paired nodes read constants that are equal up to rounding."""
    moved = operand_differences.moved(a, b, one, other)
    return all(
        x is None or y is None or not a.is_stored(x) or not b.is_stored(y) or _holds_the_same(a.side.constants, x, y)
        for _, x, y in operand_differences.pairs(a, b, one, other, same, moved)
    )


def _holds_the_same(constants: Constants, x: ir.Value, y: ir.Value) -> bool:
    """Whether two constants are equal, up to rounding."""
    if constants.number(x, Level.EXACT) == constants.number(y, Level.EXACT):
        return True
    one, other = constants.tensor(x), constants.tensor(y)
    if one is None or other is None or one.dtype != other.dtype or one.dtype not in _FLOATS:
        return False
    try:
        return rounded_weights.within(np.asarray(one.numpy()), np.asarray(other.numpy()))
    except (OSError, ValueError):  # values that cannot be read are not known to be equal
        return False


_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
"""The dtypes that `rounded_weights.within` compares."""
_SHAPED = frozenset({"Reshape", "Expand"})
"""Operators whose result is determined by the first operand and the shape of the result."""


def _is_shaped_alike(a: View, b: View, one: ir.Node, other: ir.Node, same: Same, symbols: frozenset[str]) -> bool:
    if one.op_type not in _SHAPED or one.domain or a.operator(one) != b.operator(other):
        return False
    x, y = one.inputs[0], other.inputs[0]
    if x is None or y is None or a.is_stored(x) or not same(x, y):
        return False
    ours, theirs = facts.dims(one.outputs[0]), facts.dims(other.outputs[0])
    if ours is None or ours != theirs:
        return False
    return all(isinstance(dim, int) or (dim is not None and _names(dim) <= symbols) for dim in ours)


def _names(dim: str) -> set[str]:
    return facts.symbols(dim) - {dim} or {dim}
