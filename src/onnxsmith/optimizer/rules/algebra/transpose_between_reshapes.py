"""A `Transpose` between two `Reshape`s, the second of which only splits a dimension or drops dimensions of 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules._unit_dimensions import moves_ones
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


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
        groups = _split(before, after) or _dropped(before, after)
        if groups is None or (0 in groups and moves_ones(first)):
            return None
        every = (node, transpose, first)
        axes, wanted = _moved(groups, perm, after)
        found = {"source": first.inputs[0], "perm": axes, "target": None}
        data = facts.dims(first.inputs[0]) or ()
        if not facts.same(wanted, data):
            if 0 not in groups and _inserts_ones(groups, after):
                return None
            found["target"] = _views.target(data, wanted)
            if found["target"] is None:
                return NoMatch("the new shape takes more than one number that is not known")
        return read_elsewhere(every) or Match(node, every, found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        value: ir.Value = match.found["source"]
        if match.found["target"] is not None:
            target = tape.initializer(ir.Tensor(np.array(match.found["target"], np.int64)), name="target")
            value = tape.op("Reshape", [value, target])
        return tape.op("Transpose", [value], {"perm": match.found["perm"]})


def _split(before: Sequence[facts.Element | None], after: _views.Dims) -> list[int] | None:
    """Returns into how many dimensions each of `before` is split, if one is split and the others stay; None
    otherwise."""
    left = 0
    while left < len(before) - 1 and left < len(after) and _same(before[left], after[left]):
        left += 1
    right = 0
    while right < len(before) - left - 1 and right < len(after) and _same(before[-1 - right], after[-1 - right]):
        right += 1
    extra = len(after) - len(before)
    if left + right != len(before) - 1 or extra < 0:
        return None
    return [*[1] * left, 1 + extra, *[1] * right]


def _dropped(before: Sequence[facts.Element | None], after: _views.Dims) -> list[int] | None:
    """Returns 0 for each dimension of 1 that is dropped, 1 for each dimension that stays; None if anything else
    changes."""
    groups, place = [], 0
    for dim in before:
        stays = place < len(after) and _same(dim, after[place])
        if not stays and dim != 1:
            return None
        groups.append(int(stays))
        place += stays
    return groups if place == len(after) and 0 in groups else None


def _inserts_ones(groups: Sequence[int], after: _views.Dims) -> bool:
    """Whether the split only inserts dimensions of 1: whether at most one of the new dimensions differs from 1."""
    start = next((index for index, size in enumerate(groups) if size > 1), 0)
    return sum(dim != 1 for dim in after[start : start + groups[start]]) <= 1


def _same(a: facts.Element | None, b: facts.Element | None) -> bool:
    return a is not None and a == b


def _moved(groups: Sequence[int], perm: Sequence[int], after: _views.Dims) -> tuple[list[int], _views.Dims]:
    """Returns the permutation of the split axes, and the dimensions before it."""
    starts = np.cumsum([0, *groups[:-1]]).tolist()
    places = [list(range(start, start + size)) for start, size in zip(starts, groups, strict=True)]
    order = [axis for old in range(len(perm)) for axis in places[list(perm).index(old)]]
    axes = [order.index(axis) for axis in range(len(order))]
    return axes, tuple(after[axis] for axis in order)
