"""Scaled dot-product attention that is written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.model.shapes import facts
from onnxsmith.model.shapes.uniform import uniform
from onnxsmith.rules import _views
from onnxsmith.rules._patterns import fits, integer, maker, read_elsewhere, too_old, two_ways
from onnxsmith.rules._views import perm
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule

_DTYPES = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_SWAPPED = [0, 1, 3, 2]


@dataclass(frozen=True)
class _Scores:
    """Softmax(query · keys * scale + mask), the keys transposed; `guarded` where rows of NaN become zeros."""

    nodes: tuple[ir.Node, ...]
    query: ir.Value
    keys: ir.Value
    scale: float
    mask: ir.Value | None
    guarded: bool


class Attention(Rule):
    """softmax(Q·Kᵀ·scale + mask)·V over heads is Attention (A. Vaswani et al., 2017), which newer opsets have as one
    operator and runtimes compute without writing the scores down. torch puts zeros where a row of the softmax is NaN,
    because all of it was masked; the operator gives such rows zeros by itself.

    Refused:
    1. The model's opset is below 23, which brought Attention.
    2. An intermediate result has other readers, or is a graph output.
    3. It is not provably four axes, with the same batch and heads for Q, K and V.
    4. The mask does not provably have a column for each key, or has not a row for each query, which runtimes ask for
       though the operator broadcasts, and is not one row of known size, which is expanded. Or it widens batch or heads.
    5. The mask may hide all keys from a query, and what the graph gives there is not what the operator does: it is
       computed, and not a choice between 0 and -∞ whose NaN become zeros; or a row of a constant one hides all.

    Dtypes other than float and double are no match: runtimes differ in which precision the softmax has then. Runtimes
    also refuse empty axes there: where the model took some, the check finds it and the graph stays as it was.

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
    nodes.append(softmax)
    value, mask = softmax.inputs[0], None
    added = maker(value, node, "Add")
    if added is not None:
        pairs = [(a, b) for a, b in two_ways(added) if maker(a, node, "MatMul", "Mul", "Div") is not None]
        sides = [(a, b) for a, b in pairs if _product(a, node) is not None]
        if not sides:
            return None
        nodes.append(added)
        value, mask = sides[0]
    product = _product(value, node)
    if product is None:
        return None
    matmul, scale, between = product
    query, keys = matmul.inputs
    if query is None or keys is None:
        return None
    return _Scores((*nodes, *between, matmul), query, keys, scale, mask, guard is not None)


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


def _product(value: ir.Value | None, node: ir.Node) -> tuple[ir.Node, float, list[ir.Node]] | None:
    """Returns the MatMul, and the number that its result is multiplied by."""
    matmul = maker(value, node, "MatMul")
    if matmul is not None:
        return matmul, 1.0, []
    scaled = maker(value, node, "Mul", "Div")
    for one, other in two_ways(scaled)[: 2 if scaled.op_type == "Mul" else 1] if scaled is not None else ():
        number, matmul = facts.constant(other), maker(one, node, "MatMul")
        if scaled is None or matmul is None or number is None or number.size != 1 or not float(number.item()) > 0:
            continue
        if not fits(number.shape, one):
            continue
        factor = float(number.item())
        return matmul, factor if scaled.op_type == "Mul" else 1 / factor, [scaled]
    return None


def _misfit(found: _Scores, values: ir.Value) -> NoMatch | None:
    query, keys, held = facts.dims(found.query), facts.dims(found.keys), facts.dims(values)
    if query is None or keys is None or held is None or not len(query) == len(keys) == len(held) == 4:
        return NoMatch("not all of it has four axes", found.query)
    if not (facts.same(query[:2], keys[:2]) and facts.same(query[:2], held[:2])):
        return NoMatch("batch or heads are not provably the same", found.query)
    if found.mask is None:
        return None
    rows, dims = (query[2], keys[3]), facts.dims(found.mask)
    if dims is None or not 2 <= len(dims) <= 4 or not facts.same(dims[-1:], rows[1:]):
        return NoMatch("the mask does not provably have a column for each key", found.mask)
    in_front = zip(reversed(dims[:-2]), reversed(query[:2]), strict=False)
    if any(dim != 1 and not facts.same([dim], [there]) for dim, there in in_front):
        return NoMatch("the mask is not known to leave batch and heads as they are", found.mask)
    is_one_row = dims[-2] == 1 and all(isinstance(dim, int) for dim in (*dims, rows[0]))
    if not facts.same(dims[-2:-1], rows[:1]) and not is_one_row:
        return NoMatch("the mask does not provably have a row for each query", found.mask)
    if not _hides_as_the_operator_does(found):
        return NoMatch("the mask may hide all keys from a query, of which runtimes make different things", found.mask)
    return None


def _hides_as_the_operator_does(found: _Scores) -> bool:
    array = facts.constant(found.mask)
    if array is not None:
        return bool((array.max(axis=-1) > np.finfo(array.dtype).min / 2).all())
    choice = found.mask.producer() if found.mask is not None else None
    if not found.guarded or choice is None or choice.op_type != "Where" or choice.domain:
        return False
    return sorted(float(n) for n in map(uniform, choice.inputs[1:]) if n is not None) == [-np.inf, 0.0]


def _mask(tape: ir.tape.Tape, found: _Scores, mask: ir.Value) -> ir.Value:
    """Returns the mask, expanded to one row for each query."""
    dims, query = facts.dims(mask), facts.dims(found.query)
    assert dims is not None
    assert query is not None
    if facts.same(dims[-2:-1], query[2:3]):
        return mask
    target = [int(dim) for dim in (*dims[:-2], query[2], dims[-1]) if dim is not None]
    return tape.op("Expand", [mask, _views.integers(tape, target, None)])


def _keys(tape: ir.tape.Tape, keys: ir.Value, node: ir.Node) -> ir.Value:
    """Returns the keys before the Transpose of their last two axes."""
    transpose = maker(keys, node, "Transpose")
    order = perm(transpose) if transpose is not None else None
    if transpose is None or order is None or transpose.inputs[0] is None:
        return tape.op("Transpose", [keys], {"perm": _SWAPPED})
    back = [order[axis] for axis in _SWAPPED]
    source: ir.Value = transpose.inputs[0]
    return source if back == sorted(back) else tape.op("Transpose", [source], {"perm": back})
