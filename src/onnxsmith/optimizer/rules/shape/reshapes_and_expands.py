"""Makes known targets of `Reshape` and `Expand` constant, and removes Reshapes and Expands that are not needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import UNARY, two_ways
from onnxsmith.optimizer.rules._views import Dims
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule, is_sole_use

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found


class ReshapeNoop(PatternRule):
    """A Reshape whose result has the data's shape, provably for every size, gives the data. Squeeze,
    Unsqueeze and Flatten that change no dimension are the same.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4] x) => (float[batch,4] y) <int64[2] t = {-1, 4}> {
            a = Reshape(x, t)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4] x) => (float[batch,4] y) {
            y = Relu(x)
        }
    """

    anchor = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
    exactness = Exactness.BITWISE
    pattern = "either(Reshape(x, ...), Squeeze(x, ...), Unsqueeze(x, ...), Flatten(x))"
    replacement = "x"

    def check(self, found: Found) -> Answer:
        node = found.node
        return {} if facts.same(facts.dims(node.inputs[0]), facts.dims(node.outputs[0])) else None


class ConstantReshape(Rule):
    """A target that is computed from shapes is often redundant: its symbolic elements are dimensions of the data at the
    same place, which 0 copies. One more element, known or not, can be -1, so that the Reshape computes it; this fails
    if another dimension is empty. The dynamic dimensions stay dynamic. The result needs no `allowzero`, because no
    element of the new target means an empty dimension.

    Refused:
    1. More than one element is neither an integer nor the data's dimension at the same place.
    2. A dimension of the result is 0: in the new target a 0 would copy a dimension.
    3. An element would have to be -1, and another dimension may be empty.

    A target of which not even the number of elements is known is no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4,6] x) => (float[batch,24] y) <int64[1] zero = {0}, int64[1] last = {24}> {
            s = Shape(x)
            n = Gather(s, zero)
            t = Concat <axis = 0> (n, last)
            y = Reshape(x, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4,6] x) => (float[batch,24] y) <int64[2] t = {0, 24}> {
            y = Reshape(x, t)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if len(node.inputs) < 2 or facts.constant(node.inputs[1]) is not None:
            return None
        wanted = facts.dims(node.outputs[0])
        if wanted is None:
            return None
        target = _views.target(facts.dims(node.inputs[0]), wanted)
        if target is None:
            return NoMatch(_why_not(facts.dims(node.inputs[0]) or (), wanted))
        return Match(node, (node,), {"source": node.inputs[0], "target": target})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return _views.reshaped(tape, match)


def _why_not(data: _views.Dims, wanted: _views.Dims) -> str:
    if 0 in wanted:
        return "a dimension of the result is 0"
    copied = [index < len(data) and facts.same([dim], [data[index]]) for index, dim in enumerate(wanted)]
    worked_out = [dim for dim, is_copy in zip(wanted, copied, strict=True) if not is_copy and not isinstance(dim, int)]
    if len(worked_out) > 1:
        return "0 and -1 in a shape cannot express more than one computed dimension"
    return "-1 has no meaning in the shape, because another dimension may be 0"


class ReshapeAsFlatten(Rule):
    """A Reshape to two dimensions, which are the products of the data's first and of its other dimensions, is a
    Flatten. This counts where the products are computed from symbolic dimensions: Flatten needs no target, and takes
    empty dimensions too.

    Refused:
    1. The two dimensions are not the products of the data's dimensions on both sides of an axis.

    A Reshape to another number of dimensions is no match, nor is one whose target can be constant.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[n,h,w] x) => (float[n,m] y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> {
            s = Shape(x)
            b = Gather(s, zero)
            c = Gather(s, one)
            d = Gather(s, two)
            e = Mul(c, d)
            t = Concat <axis = 0> (b, e)
            r = Reshape <allowzero = 1> (x, t)
            y = Relu(r)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[n,h,w] x) => (float[n,m] y) {
            r = Flatten(x)
            y = Relu(r)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if len(node.inputs) < 2 or facts.constant(node.inputs[1]) is not None:
            return None
        data, wanted = facts.dims(node.inputs[0]), facts.dims(node.outputs[0])
        if data is None or wanted is None or len(wanted) != 2 or _views.target(data, wanted) is not None:
            return None
        for axis in range(len(data) + 1):
            if facts.same([symbols.product(data[:axis]), symbols.product(data[axis:])], wanted):
                return Match(node, (node,), {"source": node.inputs[0], "axis": axis})
        return NoMatch(
            "the two dimensions are not the products of the data's first dimensions and of its other dimensions"
        )

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source, axis = match.found["source"], match.found["axis"]
        made: ir.Value = tape.op("Flatten", [source], {"axis": axis} if axis != 1 else {})
        return made


class ConstantExpand(Rule):
    """Expand broadcasts both ways, so a 1 in its target keeps the data's dimension. A 1 can therefore replace the
    data's own dimension in the target; a target of ones expands nothing, and the Expand is removed.

    Refused:
    1. An element is symbolic and not the data's dimension at the same place, counted from the right.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4] x) => (float[batch,4] y) {
            s = Shape(x)
            e = Expand(x, s)
            y = Relu(e)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4] x) => (float[batch,4] y) {
            y = Relu(x)
        }
    """

    anchor = ("Expand",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        source = node.inputs[0]
        target, data = facts.integers(node.inputs[1]), facts.dims(source)
        if source is None or target is None or data is None:
            return None
        written = _written_target(target, data)
        if written is None:
            return NoMatch("an element of the target depends on sizes that the data does not have")
        if len(written) <= len(data) and all(element == 1 for element in written):
            return Match(node, (node,), {"source": source, "target": None})
        if facts.constant(node.inputs[1]) is not None:
            return None
        if all(isinstance(element, int) for element in target):
            written = [int(element) for element in target]  # as folding would write it, if it ran first
        return Match(node, (node,), {"source": source, "target": written})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source: ir.Value = match.found["source"]
        target = match.found["target"]
        if target is None:
            return source
        return tape.op("Expand", [source, _views.integers(tape, target, match.node.inputs[1])])


def _written_target(target: tuple[facts.Element, ...], data: tuple[facts.Element | None, ...]) -> list[int] | None:
    """Returns the target with 1 instead of the data's own dimensions."""
    padded = (None,) * (len(target) - len(data)) + data[max(0, len(data) - len(target)) :]
    written: list[int] = []
    for element, dim in zip(target, padded, strict=True):
        if element == dim:
            written.append(1)
        elif isinstance(element, int):
            written.append(element)
        else:
            return None
    return written


_BROADCASTING = (
    *("Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less"),
    *("LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"),
)
"""Lists operators whose inputs are broadcast to one shape, from opset 8 on."""


def _is_scalar(value: ir.Value | None, rank: int) -> bool:
    """Whether a value has one element, and no more axes than `rank`."""
    dims = facts.dims(value)
    return dims is not None and len(dims) <= rank and all(dim == 1 for dim in dims)


def _is_absorbed(added: Dims, beside: Sequence[Dims]) -> bool:
    """Whether a broadcast of `beside` alone has the same shape as a broadcast of `beside` and `added`, assuming that
    the latter succeeds."""
    if len(added) > max(map(len, beside), default=0):
        return False
    for place, dim in enumerate(reversed(added), 1):
        there = [other[-place] for other in beside if place <= len(other)]
        if dim != 1 and not any(symbols.covers(other, dim) for other in there):
            return False
    return True


_NEUTRAL = {"And": True, "Or": False, "Mul": 1, "Div": 1}
_MOST_BETWEEN = 6
"""Limits the operators between the Expand and the broadcast. A choice that bounds the cost."""


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

    anchor = _BROADCASTING
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
                refused = NoMatch("an intermediate tensor is also read by a node to which its width matters", operand)
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
            others = [
                value for one in between for value in one.inputs if value is not None and _is_number_beside(value, one)
            ]
            return replace(found, between=tuple(between)) if all(_is_scalar(v, rank) for v in others) else None
        between.append(node)
        at = _through(node)
    return None


def _widening(node: ir.Node) -> _Widened | None:
    """Returns the value that a node only widens, and the added dimensions."""
    match node.op_type:
        case "Expand":
            return _as_widened(node, node.inputs[0], facts.integers(node.inputs[1]))
        case "Unsqueeze":
            dims = facts.dims(node.outputs[0])
            axes = _views.axes(node, None if dims is None else len(dims))
            in_front = dims is not None and axes is not None and axes == tuple(range(len(axes)))
            return _as_widened(node, node.inputs[0], (1,) * len(dims) if dims is not None and in_front else None)
        case "And" | "Or" | "Mul" | "Div":
            for source, other in two_ways(node):
                if uniform(other) == _NEUTRAL[node.op_type]:
                    return _as_widened(node, source, facts.dims(other))
    return None


def _as_widened(node: ir.Node, source: ir.Value | None, added: Dims | None) -> _Widened | None:
    return None if source is None or added is None else _Widened(node, source, added)


def _through(node: ir.Node) -> ir.Value | None:
    """Returns the only operand of an elementwise operator that is not a constant number."""
    if node.op_type not in (*UNARY, *_BROADCASTING):
        return None
    left = [value for value in node.inputs if value is not None and not _is_number_beside(value, node)]
    return left[0] if len(left) == 1 else None


def _is_number_beside(value: ir.Value, node: ir.Node) -> bool:
    """Whether an operand is a constant number beside another operand."""
    array = facts.constant(value) if len(node.inputs) > 1 else None
    return array is not None and array.size == 1


def _absorbs(node: ir.Node, operand: ir.Value, widened: _Widened) -> bool:
    """Whether the result of `node` keeps its shape if the narrow value replaces the operand."""
    beside = [facts.dims(value) for value in node.inputs if value is not None and value is not operand]
    beside.append(facts.dims(widened.source))
    known = [dims for dims in beside if dims is not None]
    return len(known) == len(beside) and _is_absorbed(widened.added, known)


def _is_for_broadcasts(operand: ir.Value, widened: _Widened) -> bool:
    """Whether the nodes between become unused when every reader of the operand reads the narrow value."""
    if operand.is_graph_output() or not all(is_sole_use(node.outputs[0]) for node in widened.between[1:]):
        return False
    readers = operand.consumers()
    return all(one.op_type in _BROADCASTING and not one.domain and _absorbs(one, operand, widened) for one in readers)
