"""Heads of keys or values that are repeated for several queries are read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer, maker, read_elsewhere, too_old
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_SWAPPED = [0, 1, 3, 2]
_AROUND = [0, 1, 3, 4]
"""Positions in the target of an Expand, without the axis along which heads are repeated."""


@dataclass(frozen=True)
class _Repeated:
    """The keys or values before the repetition, how often each head is repeated, and the nodes, the last first."""

    source: ir.Value
    heads: int
    times: int
    is_transposed: bool
    nodes: tuple[ir.Node, ...]
    target: ir.Value | None = None
    """The target of the Expand, if batch or length are not provably those of `source`, because the Expand may widen
    them, too."""


class RepeatedHeads(Rule):
    """Grouped queries (J. Ainslie and others, 2023) share one head of keys and values. Written out, each head is
    repeated by Unsqueeze, Expand and Reshape, or by Gather, and the whole cache is copied in every step. The rule
    stacks the rows of the queries instead, so that one product with each head serves its whole group. Both new Reshapes
    copy nothing. If batch and length of the cache are not provably those of the Expand, an Expand to them stays.

    The rewrite adds a node, so the rule runs only for the target onnxruntime, or if it is named. Measured there, the
    attention of one decoder step takes 0.2 to 0.4 of the time, and that of a whole prompt 0.9.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The left operand is not known to have four axes, and as many heads as the repeated operand.
    3. The sizes of the new Reshapes must be computed, and the model's opset is below 15, which introduced Shape with a
       start and an end.

    No match: heads that are not repeated along a new axis after the heads, or an unknown number of times.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,4,N,8] q, float[2,2,T,8] k) => (float[2,4,N,8] y)
        <int64[1] two = {2}, int64[5] wide = {1, 1, 2, 1, 1}, int64[4] heads = {2, 4, -1, 8}> {
            u = Unsqueeze(k, two)
            e = Expand(u, wide)
            r = Reshape(e, heads)
            t = Transpose <perm = [0, 1, 3, 2]> (r)
            s = MatMul(q, t)
            z = Neg(q)
            v = ReduceSum <keepdims = 1> (s)
            y = Mul(z, v)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,4,N,8] q, float[2,2,T,8] k) => (float[2,4,N,8] y)
        <int64[4] groups = {2, 2, -1, 8}, int64[2] before = {0, 4}, int64[1] zero = {0}> {
            g = Reshape(q, groups)
            t = Transpose <perm = [0, 1, 3, 2]> (k)
            p = MatMul(g, t)
            n = Shape <start = 2, end = 3> (q)
            c = Concat <axis = 0> (before, n, zero)
            s = Reshape(p, c)
            z = Neg(q)
            v = ReduceSum <keepdims = 1> (s)
            y = Mul(z, v)
        }
    """

    anchor = ("MatMul",)
    exactness = Exactness.REASSOCIATES
    target = "onnxruntime"

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _repeated(node)
        if found is None or node.inputs[0] is None:
            return None
        left, result = facts.dims(node.inputs[0]), facts.dims(node.outputs[0])
        if left is None or result is None or len(left) != 4 or left[1] != found.heads * found.times:
            return NoMatch("the other operand is not known to have as many heads", node.inputs[0])
        rows = left[2] * found.times if isinstance(left[2], int) else f"{found.times}*({left[2]})"
        grouped = [left[0], found.heads, rows, left[3]]
        targets = _views.target(left, grouped), _views.target([result[0], *grouped[1:3], result[3]], result)
        refusal = read_elsewhere((node, *found.nodes))
        if None in targets:
            refusal = refusal or too_old(node, "Shape with start and end", 15)
        return refusal or Match(node, (node, *found.nodes), {"repeated": found, "targets": targets})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        found: _Repeated = match.found["repeated"]
        queries = match.node.inputs[0]
        stack, part = match.found["targets"]
        if stack is None:
            rows = tape.op("Mul", [_size(tape, queries), _views.integers(tape, [found.times], None)])
            stacked = tape.op("Reshape", [queries, _joined(tape, found.heads, rows)])
        else:
            stacked = tape.op("Reshape", [queries, _views.integers(tape, stack, None)])
        source = found.source
        if found.target is not None:
            sizes = tape.op("Gather", [found.target, _views.integers(tape, _AROUND, None)])
            source = tape.op("Expand", [source, sizes])
        if found.is_transposed:
            source = tape.op("Transpose", [source], {"perm": _SWAPPED})
        product = tape.op("MatMul", [stacked, source])
        if part is not None:
            return tape.op("Reshape", [product, _views.integers(tape, part, None)])
        return tape.op("Reshape", [product, _joined(tape, found.heads * found.times, _size(tape, queries))])


def _size(tape: ir.tape.Tape, queries: ir.Value | None) -> ir.Value:
    """Returns the number of rows of each head, as a vector of one element."""
    return tape.op("Shape", [queries], {"start": 2, "end": 3})


def _joined(tape: ir.tape.Tape, heads: int, rows: ir.Value) -> ir.Value:
    """Returns the target [batch, heads, rows, width], in which a 0 copies a size. `rows` may be 0: then both sides have
    no rows."""
    before, after = (_views.integers(tape, numbers, None) for numbers in ([0, heads], [0]))
    return tape.op("Concat", [before, rows, after], {"axis": 0})


def _repeated(node: ir.Node) -> _Repeated | None:
    """Returns the repeated keys or values in the right operand of a product; None if nothing is repeated."""
    transpose = maker(node.inputs[1], node, "Transpose")
    if transpose is not None and perm(transpose) != _SWAPPED:
        return None
    value = node.inputs[1] if transpose is None else transpose.inputs[0]
    before = () if transpose is None else (transpose,)
    gather = maker(value, node, "Gather")
    if gather is not None:
        return _gathered(gather, before)
    reshape = maker(value, node, "Reshape")
    expand = maker(reshape.inputs[0], node, "Expand") if reshape is not None else None
    unsqueeze = maker(expand.inputs[0], node, "Unsqueeze") if expand is not None else None
    if reshape is None or expand is None or unsqueeze is None or unsqueeze.inputs[0] is None:
        return None
    source, wide = facts.dims(unsqueeze.inputs[0]), facts.integers(expand.inputs[1])
    result = facts.dims(reshape.outputs[0])
    if source is None or wide is None or result is None or _views.axes(unsqueeze, 5) != (2,):
        return None
    times = _times(source, wide, result)
    if times is None:
        return None
    widens = not facts.same([*result[:1], *result[2:]], [*source[:1], *source[2:]])
    nodes = (*before, reshape, expand, unsqueeze)
    heads, target = int(source[1]), expand.inputs[1] if widens else None  # type: ignore[arg-type]
    return _Repeated(unsqueeze.inputs[0], heads, times, bool(before), nodes, target)


def _gathered(gather: ir.Node, before: tuple[ir.Node, ...]) -> _Repeated | None:
    """Returns the heads of a Gather that takes each head equally often, one after the other; None for other Gathers."""
    source, indices = gather.inputs[0], facts.constant(gather.inputs[1])
    dims = facts.dims(source)
    if source is None or dims is None or len(dims) != 4 or integer(gather, "axis", 0) not in (1, -3):
        return None
    heads = dims[1]
    if indices is None or indices.ndim != 1 or not isinstance(heads, int) or not heads or indices.size % heads:
        return None
    times = indices.size // heads
    if times < 2 or not np.array_equal(indices, np.repeat(np.arange(heads), times)):
        return None
    return _Repeated(source, heads, times, bool(before), (*before, gather))


def _times(
    source: Sequence[facts.Element | None],
    wide: Sequence[facts.Element | None],
    result: Sequence[facts.Element | None],
) -> int | None:
    """Returns how often each head of `source` stands in `result`, if an Expand to `wide` repeats each head along a new
    axis and a Reshape merges that axis; None otherwise.

    The Expand may also broadcast batch and length of 1 to those of `wide`. The reverse is impossible: with a 1 in
    `wide` and a larger size in `source`, `result`, which has the sizes of `wide`, would have another number of
    elements.
    """
    if [len(source), len(wide), len(result)] != [4, 5, 4]:
        return None
    heads, times = source[1], wide[2]
    if not isinstance(heads, int) or not isinstance(times, int) or times < 2 or result[1] != heads * times:
        return None
    if wide[1] not in (1, heads) or wide[4] not in (1, source[3]) or result[3] != source[3]:
        return None
    kept = all(
        facts.same([result[at]], [size]) or (size == 1 and facts.same([result[at]], [source[at]]))
        for at, size in ((0, wide[0]), (2, wide[3]))
    )
    return times if kept else None
