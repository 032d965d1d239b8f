"""An `Expand` before a broadcasting operator is redundant if another operand has the same dimensions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._elementwise import BROADCASTING, UNARY, Dims, is_absorbed, is_scalar
from onnxsmith.optimizer.rules._patterns import two_ways
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule, is_sole_use

_NEUTRAL = {"And": True, "Or": False, "Mul": 1, "Div": 1}
_MOST_BETWEEN = 6
"""The most operators between the Expand and the broadcast. A choice that bounds the cost."""


class ExpandBeforeBroadcast(Rule):
    """An Expand before a broadcasting operator is redundant if another operand has the expanded dimensions. The same
    holds for an Unsqueeze that inserts axes of size 1 at the front, and for a factor (or condition) of ones of any
    shape, which only widens the other operand. Element-wise operators with numbers may stand between.

    Refused:
    1. The result of operators between is also read where the expanded shape matters: they would be computed twice.

    The rule does not match unless another operand provably has the dimensions. A number above 1 proves it against an
    unknown size, because the two broadcast only if the unknown size is 1 or the same number.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,T,T] scores, bool[M,1,1,K] mask) => (float[N,4,T,T] y) <float low = {-1000}, float zero = {0}> {
            s = Shape <start = 2> (scores)
            e = Expand(mask, s)
            w = Where(e, zero, low)
            y = Add(scores, w)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,T,T] scores, bool[M,1,1,K] mask) => (float[N,4,T,T] y) <float low = {-1000}, float zero = {0}> {
            w = Where(mask, zero, low)
            y = Add(scores, w)
        }
    """

    anchor = BROADCASTING
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if facts.opset(node) < 8:
            return None
        refused: NoMatch | None = None
        for operand in dict.fromkeys(node.inputs):
            found = _widened(operand, node) if operand is not None else None
            if operand is None or found is None or not _absorbs(node, operand, found):
                continue
            if found.between and not _is_for_broadcasts(operand, found):
                refused = NoMatch("what stands between is read where the width counts, too", operand)
                continue
            return Match(node, (node, *found.between, found.node), {"operand": operand, "widened": found})
        return refused

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        widened: _Widened = match.found["widened"]
        value, below = widened.source, widened.node.outputs[0]
        for node in reversed(widened.between):
            inputs = [value if one is below else one for one in node.inputs]
            value, below = tape.op(node.op_type, inputs, dict(node.attributes)), node.outputs[0]
        inputs = [value if one is match.found["operand"] else one for one in match.node.inputs]
        return tape.op(match.node.op_type, inputs, dict(match.node.attributes))


@dataclass(frozen=True)
class _Widened:
    """`node` broadcasts `source` with the dimensions `added`; `between` follow, the last first."""

    node: ir.Node
    source: ir.Value
    added: Dims
    between: tuple[ir.Node, ...] = ()


def _widened(operand: ir.Value, reader: ir.Node) -> _Widened | None:
    between: list[ir.Node] = []
    at: ir.Value | None = operand
    while at is not None and len(between) <= _MOST_BETWEEN:
        node = at.producer()
        if node is None or node.domain or node.graph is not reader.graph:
            return None
        found = _widening(node)
        if found is not None:
            rank = len(facts.dims(found.source) or ())
            others = [value for one in between for value in one.inputs if value is not None and _is_number(value, one)]
            return replace(found, between=tuple(between)) if all(is_scalar(v, rank) for v in others) else None
        between.append(node)
        at = _through(node)
    return None


def _widening(node: ir.Node) -> _Widened | None:
    """Returns the value that a node only widens, and the added dimensions."""
    match node.op_type:
        case "Expand":
            return _made(node, node.inputs[0], facts.integers(node.inputs[1]))
        case "Unsqueeze":
            dims = facts.dims(node.outputs[0])
            axes = _views.axes(node, None if dims is None else len(dims))
            in_front = dims is not None and axes is not None and axes == tuple(range(len(axes)))
            return _made(node, node.inputs[0], (1,) * len(dims) if dims is not None and in_front else None)
        case "And" | "Or" | "Mul" | "Div":
            for source, other in two_ways(node)[: 1 if node.op_type == "Div" else 2]:
                if uniform(other) == _NEUTRAL[node.op_type]:
                    return _made(node, source, facts.dims(other))
    return None


def _made(node: ir.Node, source: ir.Value | None, added: Dims | None) -> _Widened | None:
    return None if source is None or added is None else _Widened(node, source, added)


def _through(node: ir.Node) -> ir.Value | None:
    """Returns the only operand of an elementwise operator that is not a constant number."""
    if node.op_type not in (*UNARY, *BROADCASTING):
        return None
    left = [value for value in node.inputs if value is not None and not _is_number(value, node)]
    return left[0] if len(left) == 1 else None


def _is_number(value: ir.Value, node: ir.Node) -> bool:
    """Whether an operand is a constant number beside another operand."""
    array = facts.constant(value) if len(node.inputs) > 1 else None
    return array is not None and array.size == 1


def _absorbs(node: ir.Node, operand: ir.Value, widened: _Widened) -> bool:
    """Whether the result of `node` keeps its shape if the narrow value replaces the operand."""
    beside = [facts.dims(value) for value in node.inputs if value is not None and value is not operand]
    beside.append(facts.dims(widened.source))
    known = [dims for dims in beside if dims is not None]
    return len(known) == len(beside) and is_absorbed(widened.added, known)


def _is_for_broadcasts(operand: ir.Value, widened: _Widened) -> bool:
    """Whether the nodes between become unused when every reader of the operand reads the narrow value."""
    if operand.is_graph_output() or not all(is_sole_use(node.outputs[0]) for node in widened.between[1:]):
        return False
    readers = operand.consumers()
    return all(one.op_type in BROADCASTING and not one.domain and _absorbs(one, operand, widened) for one in readers)
