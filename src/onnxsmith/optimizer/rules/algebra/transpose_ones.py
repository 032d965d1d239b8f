"""A `Transpose` and Reshapes that only move dimensions of 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._layout import Perm, perm_of
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules._unit_dimensions import Order, first_order, known_dims, viewed
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_LONGEST = 6
"""The most nodes in a row. A choice that bounds the cost."""


class TransposeOnes(Rule):
    """Reshape, Squeeze, Unsqueeze and Flatten may only add, remove or move dimensions of 1, so that Transposes alone
    change the order of the others. A row of such views and Transposes becomes one Transpose if the rank stays, one
    Reshape if the axes that are not 1 keep their order, and nothing if both hold. If a dimension may be empty and no
    constant target of a Reshape can express the result, it becomes a Squeeze or an Unsqueeze.

    Refused:
    1. An intermediate result has other readers, or is a graph output.

    No match: shapes with a dimension that is neither a number nor a name, rows that would need both operators, and
    targets that a constant cannot express. A view that keeps its data's shape is left to shape/reshape-noop.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,36,1,T] x) => (float[N,T,36,1] y) <int64[1] one = {1}, int64[1] last = {3}> {
            a = Transpose <perm = [0, 2, 3, 1]> (x)
            b = Squeeze(a, one)
            y = Unsqueeze(b, last)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,36,1,T] x) => (float[N,T,36,1] y) {
            y = Transpose <perm = [0, 3, 1, 2]> (x)
        }
    """

    anchor = ("Transpose", *_views.VIEWS)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        row = [node]
        while (
            len(row) < _LONGEST and (before := maker(row[-1].inputs[0], node, "Transpose", *_views.VIEWS)) is not None
        ):
            row.append(before)
        if any(one.op_type != "Transpose" and _keeps_shape(one) for one in row[:2]):
            return None
        best: Match | NoMatch | None = None
        for length in range(2, len(row) + 1):
            kinds = {one.op_type == "Transpose" for one in row[:length]}
            source = row[length - 1].inputs[0]
            found = _whole(source, row[length - 1 :: -1]) if len(kinds) == 2 else None
            if found is None or source is None:
                continue
            if _goes_on(node, source, row[length - 1 :: -1]):
                return None
            refusal = read_elsewhere(row[:length])
            best = refusal or Match(node, tuple(row[:length]), {"source": source, "as": found})
        return best

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source: ir.Value = match.found["source"]
        found = match.found["as"]
        if found == ():
            return source
        if isinstance(found, _Ones):
            return found.write(tape, source, match.node)
        if isinstance(found, tuple):
            return tape.op("Transpose", [source], {"perm": list(found)})
        return tape.op("Reshape", [source, _views.integers(tape, found, match.node.outputs[0])])


@dataclass(frozen=True)
class _Ones:
    """A Squeeze or an Unsqueeze of some axes."""

    op_type: str
    axes: tuple[int, ...]

    def write(self, tape: ir.tape.Tape, source: ir.Value, node: ir.Node) -> ir.Value:
        """Writes the node in the form of the node's opset."""
        if facts.opset(node) < 13:
            return tape.op(self.op_type, [source], {"axes": list(self.axes)})
        return tape.op(self.op_type, [source, _views.integers(tape, self.axes, node.outputs[0])])


def _whole(source: ir.Value | None, row: Sequence[ir.Node]) -> Perm | list[int] | _Ones | None:
    """Returns the effect of the whole row, from the first node to the last: the permutation of a Transpose (empty if
    the row changes nothing), the target of a Reshape, or axes to insert or remove. None if no single operator does
    it."""
    first, last = known_dims(source), known_dims(row[-1].outputs[0])
    if first is None or last is None:
        return None
    order = first_order(first)
    for node in row:
        moved = _permuted(node, order) if node.op_type == "Transpose" else viewed(node, order)
        if moved is None:
            return None
        order = moved
    axes = [axis for axis in order if axis is not None]
    ones = iter([axis for axis, dim in enumerate(first) if dim == 1])
    if len(order) == len(first):
        perm = tuple(next(ones) if axis is None else axis for axis in order)
        return () if axes == sorted(axes) and facts.same(first, last) else perm
    if axes != sorted(axes):
        return None
    return _views.target(first, last) or _ones(first_order(first), order)


def _ones(before: Order, after: Order) -> _Ones | None:
    """Returns the Squeeze or Unsqueeze that does the same; None if both are needed."""
    gone, new = _missing(before, after), _missing(after, before)
    return _Ones("Squeeze", gone) if gone is not None else None if new is None else _Ones("Unsqueeze", new)


def _missing(long: Order, short: Order) -> tuple[int, ...] | None:
    """Returns the axes of 1 that the longer order has in addition to the shorter order; None if they differ
    otherwise."""
    missing, place = [], 0
    for index, axis in enumerate(long):
        if place < len(short) and short[place] == axis:
            place += 1
        elif axis is None:
            missing.append(index)
        else:
            return None
    return tuple(missing) if place == len(short) else None


def _goes_on(node: ir.Node, source: ir.Value, row: Sequence[ir.Node]) -> bool:
    """Whether the only reader of the node continues the row, so that it will match the whole row."""
    readers = node.outputs[0].consumers()
    if len(readers) != 1 or node.outputs[0].is_graph_output() or len(row) >= _LONGEST:
        return False
    (reader,) = readers
    beside = reader.op_type in ("Transpose", *_views.VIEWS) and not reader.domain and reader.graph is node.graph
    return beside and reader.inputs[0] is node.outputs[0] and _whole(source, [*row, reader]) is not None


def _keeps_shape(view: ir.Node) -> bool:
    return facts.same(facts.dims(view.inputs[0]), facts.dims(view.outputs[0]))


def _permuted(node: ir.Node, order: Order) -> Order | None:
    perm = perm_of(node)
    return None if perm is None or len(perm) != len(order) else [order[axis] for axis in perm]
