"""Joins constants in a row, and removes arithmetic and logic that changes nothing."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.optimizer.rules import _activations
from onnxsmith.optimizer.rules._fold_into_weights import Step, steps
from onnxsmith.optimizer.rules._intermediate_range import (
    loses_factor,
    loses_summand,
    room_for_factor,
    room_for_summand,
)
from onnxsmith.optimizer.rules._patterns import FLOATS, fits, maker, read_elsewhere, two_ways
from onnxsmith.optimizer.rules._ranges import largest
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_SLACK = 1024
"""Limits the bytes by which the joined constant may be larger than the larger of both constants. A choice: a saved node
is worth 1 kB."""


class ConstantChain(Rule):
    """(x * a) * b is x * (a·b), and (x + a) + b is x + (a+b), if a and b are constants. Division by a constant and Neg
    are factors, subtraction of a constant is a summand. The constants are joined in float64.

    Refused:
    1. The intermediate value has other readers, or is a graph output.
    2. The constant overflows, or is too small to be a normal number of the dtype.
    3. Two summands cancel each other to less than 2^-10, or the first factor is below 2^-10 or above 2^10: the
       intermediate value loses digits, overflows or becomes 0, and this may be visible in the result.
    4. The first factor is above 1 and the second below: x * 512 may overflow although x * 512 / 1024 is in range, and
       infinity would become a number. Allowed if earlier operators prove that x is not so large (Sigmoid, Clip, a Cast
       of integers). Summands of opposite signs that may overflow are refused for the same reason.
    5. The joined constant would be over 1 kB larger than either constant, because they are broadcast to each other.

    No match: integers, because shapes are computed with them; the last factor of a written-out Gelu or Swish together
    with a factor after it.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float a = {4}, float[2] b = {3, 6}, float c = {0.5}> {
            d = Mul(x, a)
            e = Mul(b, d)
            y = Div(e, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2] c = {24, 48}> {
            y = Mul(x, c)
        }
    """

    anchor = ("Mul", "Div", "Neg", "Add", "Sub")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for _, outer in steps(node):
            first = None if isinstance(outer, NoMatch) else maker(outer.source, node, *self.anchor)
            if first is None or isinstance(outer, NoMatch) or outer.source.dtype not in FLOATS:
                continue
            for where, inner in steps(first):
                if isinstance(inner, NoMatch) or _scales(first) != _scales(node):
                    continue
                found = read_elsewhere((node, first)) or _joined(node, first, inner, outer, where.name or "")
                # joined with a later factor, the last factor would hide the activation from runtimes
                if isinstance(found, Match) and _activations.is_part(first) and not _activations.is_part(node):
                    continue
                return found
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        constant = tape.initializer(ir.tensor(match.found["constant"]), name=f"{match.found['name']}_joined")
        return tape.op(match.found["op_type"], [match.found["source"], constant])


def _scales(node: ir.Node) -> bool:
    return node.op_type in ("Mul", "Div", "Neg")


def _joined(node: ir.Node, first: ir.Node, inner: Step, outer: Step, name: str) -> Match | NoMatch:
    """Joins both constants. The shape of the result stays, because broadcasting is associative."""
    dtype = outer.source.dtype
    assert dtype is not None
    factors = _scales(node)
    a, b = (inner.scale, outer.scale) if factors else (inner.shift, outer.shift)
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return NoMatch("only the data broadcasts the constants", name)
    if (np.prod(shape) - max(a.size, b.size)) * dtype.itemsize > _SLACK:
        return NoMatch("the combined constant needs more memory", name)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        exact = a * b if factors else a + b
        constant = np.asarray(exact).astype(dtype.numpy())
    size, limits = np.abs(exact), np.finfo(dtype.numpy())
    small = (size < limits.tiny) & (a != 0) & (b != 0) if factors else np.zeros(shape, bool)
    if not np.isfinite(constant).all() or small.any():
        return NoMatch("the constant is out of the range of the dtype", name)
    if loses_factor(a) if factors else loses_summand(a, exact, b):
        return NoMatch("the intermediate result loses digits, overflows or becomes 0", name)
    if largest(inner.source) > (room_for_factor if factors else room_for_summand)(a, b, limits):
        return NoMatch("the intermediate result overflows where the final result does not", name)
    found = {"source": inner.source, "constant": constant, "op_type": "Mul" if factors else "Add", "name": name}
    return Match(node, (node, first), found)


_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1, "Pow": 1, "And": True, "Or": False}


class NeutralOperand(Rule):
    """x + 0, x - 0, x * 1, x / 1, x ** 1, x and true, x or false are x. Adding 0 turns -0.0 into 0.0, which is equal in
    value. The number may be a constant, or a tensor in which provably every element is this number: a mask of ones of
    any size, a comparison that is always true.

    Refused:
    1. The other operand's shape could change the result's: it has a higher rank, or a dimension that is not 1 and not
       provably x's.

    The rule does not match before opset 7, where attributes controlled broadcasting.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) <float one = {1}, float[4] zeros = {0, 0, 0, 0}> {
            a = Mul(one, x)
            b = Add(a, zeros)
            y = Relu(b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) {
            y = Relu(x)
        }
    """

    anchor = tuple(_NEUTRAL)
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if facts.opset(node) < 7:
            return None
        refused: NoMatch | None = None
        for source, other in two_ways(node):
            if uniform(other) != _NEUTRAL[node.op_type]:
                continue
            array = facts.constant(other)
            shape = facts.dims(other) if array is None else array.shape
            if shape is not None and fits(shape, source):
                return Match(node, (node,), {"source": source})
            refused = NoMatch("the other operand's shape could change the result's", other)
        return refused

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source: ir.Value = match.found["source"]
        return source
