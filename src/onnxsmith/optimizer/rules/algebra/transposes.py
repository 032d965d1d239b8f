"""Joins and removes `Transpose`, alone and around other operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._layout import Perm, perm_of
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import UNARY, maker, only_reader, read_elsewhere
from onnxsmith.optimizer.rules._views import Order, first_order, known_dims, moves_ones, perm, viewed
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found


class TransposeChain(Rule):
    """Transpose(Transpose(x, p), q) is Transpose(x, p∘q); if that keeps every axis in place, it is x.

    A single Transpose that keeps every axis in place is removed, too.

    Without `perm` the axes are reversed. This is no match if the rank is unknown.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (float[B,A,C] y) {
            a = Transpose <perm = [2, 0, 1]> (x)
            b = Transpose <perm = [2, 1, 0]> (a)
            y = Relu(b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (float[B,A,C] y) {
            b = Transpose <perm = [1, 0, 2]> (x)
            y = Relu(b)
        }
    """

    anchor = ("Transpose",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        outer, source = perm(node), node.inputs[0]
        if outer is None or source is None:
            return None
        if outer == list(range(len(outer))):
            return Match(node, (node,), {"source": source, "perm": None})
        inner = maker(source, node, "Transpose")
        first = perm(inner) if inner is not None else None
        if inner is None or first is None or len(first) != len(outer):
            return None
        return Match(node, (node, inner), {"source": inner.inputs[0], "perm": [first[axis] for axis in outer]})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source: ir.Value = match.found["source"]
        axes = match.found["perm"]
        return source if axes is None else tape.op("Transpose", [source], {"perm": axes})


class TransposeGather(PatternRule):
    """A Gather with one index removes an axis. If the other axes are then in their old order, the Gather can read the
    data before the Transpose: the last step of a sequence is the same, whether batch or time comes first.

    Refused:
    1. The other axes change places: a Transpose would still be needed, after the Gather.

    An index of rank 1 or more is no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[T,N,4] x) => (float[N,4] y) <int64 last = {-1}> {
            t = Transpose <perm = [1, 0, 2]> (x)
            y = Gather <axis = 1> (t, last)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[T,N,4] x) => (float[N,4] y) <int64 last = {-1}> {
            y = Gather <axis = 0> (x, last)
        }
    """

    anchor = ("Gather",)
    exactness = Exactness.BITWISE
    pattern = "t = Transpose(x)  y = Gather <axis = ?axis> (t, i)"
    replacement = "Gather <axis = ?taken> (x, i)"

    def check(self, found: Found) -> Answer:
        order, axis = perm(found.made("t")), found.integer("axis")
        if order is None or axis is None or facts.dims(found["i"]) != () or not -len(order) <= axis < len(order):
            return None
        left = [one for one in order if one != order[axis]]
        if left != sorted(left):
            return NoMatch("the remaining axes change their order", found.node)
        return {"taken": order[axis]}


class TransposeThroughUnary(Rule):
    """Operators that treat every element alike do not depend on its position: Transpose(f(Transpose(x, p)), q) is
    f(Transpose(x, p∘q)), or f(x) if p∘q keeps every axis in place. f may be several operators in a row. Converters of
    networks with the channels last write such pairs around the activation between two convolutions.

    Refused:
    1. An intermediate result has other readers, or is a graph output: both transposes would stay.

    No match: a `perm` that refers to a function's attribute; no `perm` with an unknown rank.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (float[A,B,C] y) {
            a = Transpose <perm = [0, 2, 1]> (x)
            b = Relu(a)
            c = Tanh(b)
            y = Transpose <perm = [0, 2, 1]> (c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (float[A,B,C] y) {
            b = Relu(x)
            y = Tanh(b)
        }
    """

    anchor = ("Transpose",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        between: list[ir.Node] = []
        at = maker(node.inputs[0], node, *UNARY)
        while at is not None:
            between.append(at)
            at = maker(at.inputs[0], node, *UNARY)
        first = maker(between[-1].inputs[0], node, "Transpose") if between else None
        if first is None:
            return None
        outer, inner = perm(node), perm(first)
        if outer is None or inner is None or len(outer) != len(inner):
            return None
        every = (node, *between, first)
        composed = [inner[axis] for axis in outer]
        return read_elsewhere(every) or Match(node, every, {"perm": composed})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        *between, first = match.nodes[1:]
        composed = match.found["perm"]
        value = first.inputs[0]
        if composed != list(range(len(composed))):
            value = tape.op("Transpose", [value], {"perm": composed})
        for node in reversed(between):
            value = tape.op(node.op_type, [value], dict(node.attributes))
        assert value is not None
        return value


class TransposeBetweenReshapes(Rule):
    """A dimension that is split after a transpose can be split before it: Reshape(Transpose(Reshape(x))) is
    Transpose(Reshape(x)) with more axes. If the second Reshape undoes the first, no Reshape is left. An example is the
    key of an attention, whose batch and heads are merged for its transpose. A dimension of 1 that the first Reshape
    makes and the second drops is not made. Squeeze, Unsqueeze and Flatten count as Reshapes.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The shape after the new Reshape has more than one unknown number.

    No match: a last Reshape that does not provably split one dimension, or drop dimensions of 1, and keep the others; a
    last Reshape that only inserts dimensions of 1, unless both Reshapes disappear. If both Reshapes only move
    dimensions of 1, algebra/transpose-ones rewrites them.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[B,4,6,8] x) => (float[B,4,8,6] y) <int64[3] merged = {-1, 6, 8}, int64[4] split = {-1, 4, 8, 6}> {
            a = Reshape(x, merged)
            b = Transpose <perm = [0, 2, 1]> (a)
            y = Reshape(b, split)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[B,4,6,8] x) => (float[B,4,8,6] y) {
            y = Transpose <perm = [0, 1, 3, 2]> (x)
        }
    """

    anchor = _views.VIEWS
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        transpose = maker(node.inputs[0], node, "Transpose")
        first = maker(transpose.inputs[0], node, *_views.VIEWS) if transpose is not None else None
        if transpose is None or first is None or first.inputs[0] is None:
            return None
        perm, between, after = _views.perm(transpose), _views.dims_after(first), _views.dims_after(node)
        if perm is None or between is None or after is None or len(perm) != len(between):
            return None
        before = [between[axis] for axis in perm]
        groups = _split_dims(before, after) or _dropped_ones(before, after)
        if groups is None or (0 in groups and moves_ones(first)):
            return None
        every = (node, transpose, first)
        axes, wanted = _before_transpose(groups, perm, after)
        found = {"source": first.inputs[0], "perm": axes, "target": None}
        data = facts.dims(first.inputs[0]) or ()
        if not facts.same(wanted, data):
            if 0 not in groups and _inserts_ones(groups, after):
                return None
            found["target"] = _views.target(data, wanted)
            if found["target"] is None:
                return NoMatch("more than one dimension of the new shape is not known")
        return read_elsewhere(every) or Match(node, every, found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        value: ir.Value = match.found["source"]
        if match.found["target"] is not None:
            target = tape.initializer(ir.Tensor(np.array(match.found["target"], np.int64)), name="target")
            value = tape.op("Reshape", [value, target])
        return tape.op("Transpose", [value], {"perm": match.found["perm"]})


def _split_dims(before: Sequence[facts.Element | None], after: _views.Dims) -> list[int] | None:
    """Returns into how many dimensions each of `before` is split, if one is split and the others stay; None
    otherwise."""
    left = 0
    while left < len(before) - 1 and left < len(after) and _same_dim(before[left], after[left]):
        left += 1
    right = 0
    while right < len(before) - left - 1 and right < len(after) and _same_dim(before[-1 - right], after[-1 - right]):
        right += 1
    extra = len(after) - len(before)
    if left + right != len(before) - 1 or extra < 0:
        return None
    return [*[1] * left, 1 + extra, *[1] * right]


def _dropped_ones(before: Sequence[facts.Element | None], after: _views.Dims) -> list[int] | None:
    """Returns 0 for each dimension of 1 that is dropped, 1 for each dimension that stays; None if anything else
    changes."""
    groups, place = [], 0
    for dim in before:
        stays = place < len(after) and _same_dim(dim, after[place])
        if not stays and dim != 1:
            return None
        groups.append(int(stays))
        place += stays
    return groups if place == len(after) and 0 in groups else None


def _inserts_ones(groups: Sequence[int], after: _views.Dims) -> bool:
    """Whether the split only inserts dimensions of 1: whether at most one of the new dimensions differs from 1."""
    start = next((index for index, size in enumerate(groups) if size > 1), 0)
    return sum(dim != 1 for dim in after[start : start + groups[start]]) <= 1


def _same_dim(a: facts.Element | None, b: facts.Element | None) -> bool:
    return a is not None and a == b


def _before_transpose(groups: Sequence[int], perm: Sequence[int], after: _views.Dims) -> tuple[list[int], _views.Dims]:
    """Returns the permutation of the split axes, and the dimensions before it."""
    starts = np.cumsum([0, *groups[:-1]]).tolist()
    places = [list(range(start, start + size)) for start, size in zip(starts, groups, strict=True)]
    order = [axis for old in range(len(perm)) for axis in places[list(perm).index(old)]]
    axes = [order.index(axis) for axis in range(len(order))]
    return axes, tuple(after[axis] for axis in order)


_LONGEST = 6
"""Limits the nodes in a row. A choice that bounds the cost."""


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
            found = _row_effect(source, row[length - 1 :: -1]) if len(kinds) == 2 else None
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
            node = match.node
            return _views.with_axes(tape, found.op_type, source, found.axes, node.outputs[0], facts.opset(node))
        if isinstance(found, tuple):
            return tape.op("Transpose", [source], {"perm": list(found)})
        return tape.op("Reshape", [source, _views.integers(tape, found, match.node.outputs[0])])


@dataclass(frozen=True)
class _Ones:
    """Stands for a Squeeze or an Unsqueeze of some axes."""

    op_type: str
    axes: tuple[int, ...]


def _row_effect(source: ir.Value | None, row: Sequence[ir.Node]) -> Perm | list[int] | _Ones | None:
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
    return _views.target(first, last) or _inserted_or_removed(first_order(first), order)


def _inserted_or_removed(before: Order, after: Order) -> _Ones | None:
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
    reader = only_reader(node)
    if reader is None or reader.op_type not in ("Transpose", *_views.VIEWS) or len(row) >= _LONGEST:
        return False
    return reader.inputs[0] is node.outputs[0] and _row_effect(source, [*row, reader]) is not None


def _keeps_shape(view: ir.Node) -> bool:
    return facts.same(facts.dims(view.inputs[0]), facts.dims(view.outputs[0]))


def _permuted(node: ir.Node, order: Order) -> Order | None:
    perm = perm_of(node)
    return None if perm is None or len(perm) != len(order) else [order[axis] for axis in perm]
