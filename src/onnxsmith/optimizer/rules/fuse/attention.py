"""Fuses attention that is written out, and reads repeated heads once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import fits, integer, maker, read_elsewhere, times_number, too_old, two_ways
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.optimizer.rules._attention_masks import Mask, Step

    _Product = tuple[ir.Node, float, list[ir.Node]]
    _Masked = tuple[_Product, tuple[Step, ...], tuple[ir.Node, ...]]


_MOST_MASKS = 3
"""Limits the masks in a row on the same scores. A choice: models have two."""
_DTYPES = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_Dim = facts.Element | None
_SWAPPED = [0, 1, 3, 2]


@dataclass(frozen=True)
class _Scores:
    """Describes the softmax of the masked scores query · keysᵀ * scale. `guarded` is true if rows of NaN become
    zeros."""

    nodes: tuple[ir.Node, ...]
    query: ir.Value
    keys: ir.Value
    scale: float
    masks: tuple[Step, ...]
    guarded: bool

    @property
    def mask(self) -> Mask | None:
        """Returns all masks together."""
        from onnxsmith.optimizer.rules._attention_masks import Mask

        dtype = self.query.dtype
        return Mask(self.masks, self.guarded, dtype) if self.masks and dtype is not None else None


class Attention(Rule):
    """softmax(Q·Kᵀ·scale + mask)·V over heads is Attention (A. Vaswani et al., 2017), which newer opsets have as one
    operator, and which runtimes compute without storing the scores. torch replaces rows of the softmax that are NaN,
    because every key was masked, by zeros; the operator does so by itself.

    Refused:
    1. The model's opset is below 23, which brought Attention.
    2. An intermediate result has other readers, or is a graph output.
    3. Q, K and V do not provably have four axes, with the same batch and heads.
    4. The mask does not provably have a column for each key. Or it does not have a row for each query, which runtimes
       require although the operator broadcasts, and is not one row of known size, which the rule expands. Or it widens
       batch or heads: the same name in two inputs may stand for two sizes.
    5. The mask may hide all keys from a query, and the graph gives another result there than the operator: the
       computation of the mask is not understood, or a row has only -∞ and NaN are not replaced by zeros.
    6. The number that replaces scores is above half of the lowest number of the dtype: it may not hide a key.

    A mask may be added to the scores, or choose between scores and a number (`masked_fill`); several masks in a row are
    allowed. -∞ is allowed if each query provably sees a key: in the rows of a constant, below a diagonal, by a
    comparison of positions, or in a slice of these. The lowest number of the dtype, and integers times it, swallow the
    scores. So a query gets the mean of the values if all keys are hidden; runtimes give zeros there, but not for half
    of that number. Half of it therefore replaces it, which swallows scores below 2^100. The results may differ in two
    cases: a choice also hides a NaN score, the operator does not; and steps before the mask may overflow.

    Dtypes other than float and double are no match: runtimes differ in the precision of the softmax then. Runtimes also
    refuse empty axes for the operator. If the model accepted them before, the verification finds the difference, and
    the graph stays as it was.

    Before:
        <ir_version: 10, opset_import: ["": 23]>
        g (float[1,2,16,4] x) => (float[1,2,16,4] y) <float half = {0.5}> {
            k = Abs(x)
            v = Tanh(x)
            t = Transpose <perm = [0, 1, 3, 2]> (k)
            m = MatMul(x, t)
            d = Mul(m, half)
            s = Softmax(d)
            y = MatMul(s, v)
        }

    After:
        <ir_version: 10, opset_import: ["": 23]>
        g (float[1,2,16,4] x) => (float[1,2,16,4] y) {
            k = Abs(x)
            v = Tanh(x)
            y = Attention <scale = 0.5> (x, k, v)
        }
    """

    anchor = ("MatMul",)
    exactness = Exactness.REASSOCIATES
    makes = "Attention"

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _scores(node)
        values = node.inputs[1]
        if found is None or values is None or node.outputs[0].dtype not in _DTYPES:
            return None
        refused = too_old(node, "Attention", 23) or read_elsewhere((node, *found.nodes)) or _misfit(found, values)
        return refused or Match(node, (node, *found.nodes), {"scores": found})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        found: _Scores = match.found["scores"]
        inputs = [found.query, _keys(tape, found.keys, match.node), match.node.inputs[1]]
        if found.mask is not None:
            inputs.append(_mask(tape, found, found.mask))
        return tape.op("Attention", inputs, {"scale": found.scale})


def _scores(node: ir.Node) -> _Scores | None:
    """Returns the parts of the left operand of the second product."""
    nodes: list[ir.Node] = []
    value = node.inputs[0]
    guard = _guard(value, node)
    if guard is not None:
        nodes += guard
        value = guard[0].inputs[2]
    softmax = maker(value, node, "Softmax")
    if softmax is None or integer(softmax, "axis", -1) not in (-1, 3):
        return None
    found = _masked(softmax.inputs[0], node, _MOST_MASKS)
    if found is None:
        return None
    (matmul, scale, between), masks, masking = found
    query, keys = matmul.inputs
    if query is None or keys is None:
        return None
    every = (*nodes, softmax, *masking, *between, matmul)
    return _Scores(every, query, keys, scale, masks, guard is not None)


def _masked(value: ir.Value | None, node: ir.Node, most: int) -> _Masked | None:
    """Returns the scaled product, its masks, the innermost first, and the masking nodes, the outermost first."""
    product = _scaled_product(value, node)
    if product is not None:
        return product, (), ()
    masks = maker(value, node, "Add", "Where") if most else None
    for scores, step in _steps(masks) if masks is not None else ():
        found = _masked(scores, node, most - 1)
        if found is not None and masks is not None:
            return found[0], (*found[1], step), (masks, *found[2])
    return None


def _steps(node: ir.Node) -> Iterator[tuple[ir.Value, Step]]:
    """Yields the ways to read an Add or a Where as a mask of scores, each with the scores."""
    from onnxsmith.optimizer.rules._attention_masks import Added, Chosen

    if node.op_type == "Add":
        yield from ((one, Added(other)) for one, other in two_ways(node))
        return
    condition, first, second = node.inputs
    for scores, other in ((first, second), (second, first)):
        fill, shape = uniform(other), facts.dims(other)
        if condition is None or scores is None or fill is None or shape is None:
            continue
        if fits(shape, scores):
            yield scores, Chosen(condition, scores is first, float(fill))


def _guard(value: ir.Value | None, node: ir.Node) -> list[ir.Node] | None:
    """Returns the Where and the IsNaN of `0 where p is NaN, else p`, in the shape of p."""
    where = maker(value, node, "Where")
    zeros = where.inputs[1] if where is not None else None
    if where is None or where.inputs[2] is None or uniform(zeros) != 0:
        return None
    shape = facts.dims(zeros)
    if shape is None or not fits(shape, where.inputs[2]):
        return None
    test = maker(where.inputs[0], node, "IsNaN")
    return [where, test] if test is not None and test.inputs[0] is where.inputs[2] else None


def _scaled_product(value: ir.Value | None, node: ir.Node) -> tuple[ir.Node, float, list[ir.Node]] | None:
    """Returns the MatMul, and the number that its result is multiplied by."""
    matmul = maker(value, node, "MatMul")
    if matmul is not None:
        return matmul, 1.0, []
    scaled = maker(value, node, "Mul", "Div")
    for one, number in times_number(scaled):
        matmul = maker(one, node, "MatMul")
        if scaled is not None and matmul is not None and float(number) > 0:
            return matmul, float(number) if scaled.op_type == "Mul" else 1 / float(number), [scaled]
    return None


def _misfit(found: _Scores, values: ir.Value) -> NoMatch | None:
    query, keys, held = facts.dims(found.query), facts.dims(found.keys), facts.dims(values)
    if query is None or keys is None or held is None or not len(query) == len(keys) == len(held) == 4:
        return NoMatch("query, keys and values do not all have four axes", found.query)
    if not (facts.same(query[:2], keys[:2]) and facts.same(query[:2], held[:2])):
        return NoMatch("batch or heads are not provably the same", found.query)
    if found.mask is None:
        return None
    for step in found.masks:
        refused = _shaped_otherwise(step.value, query, keys[3])
        if refused is not None:
            return refused
    shapes = [facts.dims(step.value) or () for step in found.masks]
    has_rows = any(_is_size(dims[-2], query[2]) for dims in shapes)
    if not has_rows and not all(isinstance(dim, int) for dims in (*shapes, query[2:3]) for dim in dims):
        return NoMatch("the mask does not provably have a row for each query", found.masks[0].value)
    return found.mask.refusal()


def _shaped_otherwise(mask: ir.Value, query: Sequence[_Dim], keys: _Dim) -> NoMatch | None:
    """Returns why the shape of a mask does not fit the operator; None if it fits."""
    dims = facts.dims(mask)
    if dims is None or not 2 <= len(dims) <= 4:
        return NoMatch("the mask does not have two to four axes", mask)
    if not _is_size(dims[-1], keys):
        said = _other_name(dims[-1], keys)
        return NoMatch(f"the mask does not provably have a column for each key{said}", mask)
    for dim, there in zip(reversed(dims[:-2]), reversed(query[:2]), strict=False):
        if dim != 1 and not facts.same([dim], [there]):
            said = _other_name(dim, there)
            return NoMatch(f"the mask may change the sizes of batch or heads{said}", mask)
    if dims[-2] != 1 and not _is_size(dims[-2], query[2]):
        return NoMatch("the mask does not provably have a row for each query", mask)
    return None


def _is_size(dim: _Dim, wanted: _Dim) -> bool:
    """Whether a dimension equals the wanted dimension whenever it broadcasts to it: they are the same, or one is 1 only
    if the other is, such as Min(64, n) and n."""
    if facts.same([dim], [wanted]):
        return True
    least = symbols.smallest([2, wanted])
    return least is not None and dim is not None and symbols.covers(wanted, dim) and symbols.at_least(dim, least)


def _other_name(dim: _Dim, wanted: _Dim) -> str:
    """Returns a hint if two inputs use the same name, which inference keeps apart because the sizes may differ."""
    for one, other in ((dim, wanted), (wanted, dim)):
        if isinstance(one, str) and isinstance(other, str) and re.fullmatch(rf"dim_{re.escape(other)}_\d+", one):
            return f": inputs may have two sizes for {other} (a size of {other}, given by --set-dim, makes them equal)"
    return ""


def _mask(tape: ir.tape.Tape, found: _Scores, mask: Mask) -> ir.Value | None:
    """Returns the mask, expanded to one row for each query."""
    made, query = mask.write(tape), facts.dims(found.query)
    shapes = [facts.dims(step.value) or () for step in mask.steps]
    assert query is not None
    if made is None or any(_is_size(dims[-2], query[2]) for dims in shapes):
        return made
    target = np.broadcast_shapes(*(tuple(int(dim) for dim in dims if dim is not None) for dims in shapes))
    sizes = [*target[:-2], int(query[2] or 0), target[-1]]
    return tape.op("Expand", [made, _views.integers(tape, sizes, None)])


def _keys(tape: ir.tape.Tape, keys: ir.Value, node: ir.Node) -> ir.Value:
    """Returns the keys before the Transpose of their last two axes."""
    transpose = maker(keys, node, "Transpose")
    order = perm(transpose) if transpose is not None else None
    if transpose is None or order is None or transpose.inputs[0] is None:
        return tape.op("Transpose", [keys], {"perm": _SWAPPED})
    back = [order[axis] for axis in _SWAPPED]
    source: ir.Value = transpose.inputs[0]
    return source if back == sorted(back) else tape.op("Transpose", [source], {"perm": back})


_AROUND = [0, 1, 3, 4]
"""Lists the positions in the target of an Expand, without the axis along which heads are repeated."""


@dataclass(frozen=True)
class _Repeated:
    """Holds the keys or values before the repetition, how often each head is repeated, and the nodes, the last
    first."""

    source: ir.Value
    heads: int
    times: int
    is_transposed: bool
    nodes: tuple[ir.Node, ...]
    target: ir.Value | None = None
    """Is the target of the Expand, if batch or length are not provably those of `source`, because the Expand may widen
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
            rows = tape.op("Mul", [_row_count(tape, queries), _views.integers(tape, [found.times], None)])
            stacked = tape.op("Reshape", [queries, _heads_target(tape, found.heads, rows)])
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
        return tape.op("Reshape", [product, _heads_target(tape, found.heads * found.times, _row_count(tape, queries))])


def _row_count(tape: ir.tape.Tape, queries: ir.Value | None) -> ir.Value:
    """Returns the number of rows of each head, as a vector of one element."""
    return tape.op("Shape", [queries], {"start": 2, "end": 3})


def _heads_target(tape: ir.tape.Tape, heads: int, rows: ir.Value) -> ir.Value:
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
