"""Moves constant factors into weights that are not next to them.

A factor moves back through operators that are linear in their inputs. A Transpose permutes it, a Reshape to heads
reshapes it, and a Split joins the factors of its parts, with 1 for a part without a factor. If several nodes read a
value, all of them must need the same factor, as in the rotation of a query by its position."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _activations, _split, _views
from onnxsmith.optimizer.rules._fold_into_weights import LINEAR, Folded, Linear, Step, fold, linear
from onnxsmith.optimizer.rules._intermediate_range import leaves_range, loses_factor, room_for_factor
from onnxsmith.optimizer.rules._patterns import fits, integer, maker, only_reader, two_ways
from onnxsmith.optimizer.rules._ranges import largest
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class DistantFactor(Rule):
    """A factor can move through operators that are linear or only move data: Transpose(MatMul(x, W)) * c is
    Transpose(MatMul(x, W·c)). So the scale of an attention, on its scores or on query and key, goes into the weights of
    the query. The factor moves back through Transpose, Reshape, Split, Slice and Concat, through sums in which every
    term takes it, and through products in which one factor takes it (the rotation by positions, MatMul). It ends in a
    linear operator, a LayerNormalization, or an existing factor. If there is no operator between, fuse/conv-mul and
    fuse/matmul-mul do it.

    A factor on one side of a MatMul may go to the other side.

    Constants are computed in float64 and stored in their old dtype.

    Refused:
    1. The weights have other readers or are not constants, as for fuse/matmul-mul. Or the bias of a LayerNormalization
       is not constant.
    2. A product overflows, or a small one loses bits: it is not a normal number of the weights' dtype.
    3. Without the factor, a value overflows or becomes 0 although the result does not, as for algebra/constant-chain.
    4. A constant that takes the factor would grow by more than 1 kB.

    No match: a factor that raises the rank or widens its value; a value on the way with other readers.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,2,3] y) <float[2,2] w = {1, 2, 3, 4}, float half = {0.5}> {
            a = MatMul(x, w)
            b = Transpose <perm = [0, 2, 1]> (a)
            y = Mul(b, half)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,2,3] y) <float[2,2] w = {0.5, 1, 1.5, 2}> {
            a = MatMul(x, w)
            y = Transpose <perm = [0, 2, 1]> (a)
        }
    """

    anchor = ("Mul", "Div")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if facts.opset(node) < 7:
            return None
        for source, other in two_ways(node):
            array = facts.constant(other)
            if array is None or array.dtype.kind != "f" or not fits(array.shape, source) or not array.all():
                continue
            dims = facts.dims(source) or ()
            factor = array.astype(np.float64).reshape((1,) * (len(dims) - array.ndim) + array.shape)
            if node.op_type == "Div":
                factor = 1 / factor
            return _distant_match(node, source, factor)
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        sink: _Sink = match.found["sink"]
        new = sink.write(tape)
        source: ir.Value = match.found["source"]
        return {sink.value: new, match.node.outputs[0]: new if source is sink.value else source}


def _distant_match(node: ir.Node, source: ir.Value, factor: _Array) -> Match | NoMatch | None:
    refusal: NoMatch | None = None
    ways = [(source, factor, node)]
    reader, result = only_reader(node), node.outputs[0]
    if reader is not None and reader.op_type == "MatMul" and len(result.uses()) == 1:
        ways += [(value, factor, reader) for value in reader.inputs if value is not None and value is not result]
    for value, numbers, by in ways:
        if by is not node and (numbers.size > 1 or facts.is_constant(value)):
            continue
        sink = _sink(value, numbers, [by])
        if isinstance(sink, NoMatch):
            refusal = refusal or sink
        elif sink is not None and not (by is node and sink.value is source and sink.nodes[0].op_type in _NEAR):
            found = {"sink": sink, "source": source}
            return Match(node, (node, *sink.nodes), found, sink.nodes[-1], sink.scaled)
    return refusal


_NEAR = ("Conv", "ConvTranspose", "Gemm", "MatMul", "Add")
"""Lists operators that fuse/conv-mul and fuse/matmul-mul handle, if the factor follows them directly."""


_Array = npt.NDArray[np.float64]
_MOST = 40
"""Limits the nodes that one search visits. A choice that bounds the cost."""
_SLACK = 1024
"""Limits the bytes by which a constant may grow when it takes the factor. A choice: a saved node is worth 1 kB."""


@dataclass(frozen=True)
class _Sink:
    """Describes the place that takes the factor: the value whose nodes are replaced, these nodes, the last first, and
    the function that writes the new nodes. `scaled` are the values that contain the factor afterwards."""

    value: ir.Value
    nodes: tuple[ir.Node, ...]
    write: Callable[[ir.tape.Tape], ir.Value]
    scaled: tuple[ir.Value, ...] = ()


def _sink(value: ir.Value, factor: _Array, readers: Sequence[ir.Node]) -> _Sink | NoMatch | None:
    """Returns the place that can take a factor on `value`, whose only readers are `readers`. None if there is no place,
    a refusal if the place cannot take the factor. The factor has the rank of the value, with size 1 on axes along which
    it does not vary, or it has one element."""
    refusal: NoMatch | None = None
    for near in (False, True):
        flow = _Flow(readers[0], near)
        if flow.reaches(value) and len(flow.ends) == 1 and flow.spread(value, factor, readers):
            (end,) = flow.ends
            found = _into(end, flow.factors[end], readers[0])
            if isinstance(found, _Sink):
                return replace(found, scaled=tuple(flow.factors))
            flow.refusal = found
        refusal = refusal or flow.refusal
    return refusal


@dataclass
class _Flow:
    """Finds the nodes from a value back to the place that takes its factor: the farthest possible place, or the
    nearest."""

    reader: ir.Node
    near: bool
    through: dict[ir.Node, tuple[ir.Value, ...]] = field(default_factory=dict)
    """Lists for each node, producers first, the inputs that must contain the factor."""
    ends: dict[ir.Value, None] = field(default_factory=dict)
    factors: dict[ir.Value, _Array] = field(default_factory=dict)
    refusal: NoMatch | None = None
    _seen: dict[ir.Value, bool] = field(default_factory=dict)

    def reaches(self, value: ir.Value) -> bool:
        """Whether a place can take the factor of the value. Notes the nodes on the way."""
        if value not in self._seen:
            # while the value is examined, a second path to it counts as failed
            self._seen[value] = False
            self._seen[value] = len(self._seen) < _MOST and self._found(value)
        return self._seen[value]

    def _found(self, value: ir.Value) -> bool:
        found = linear(value, self.reader, *LINEAR)
        if isinstance(found, Linear):
            if facts.is_constant(found.weight) and len(found.weight.uses()) == 1:
                self.ends[value] = None
                return True
            self.refusal = NoMatch("the weights are also used elsewhere, or are not constant", found.weight)
            return False
        node = maker(value, self.reader, *_BACK, *_BOTH, *_EITHER, "LayerNormalization")
        if node is None:
            return False
        is_end = node.op_type in (*_EITHER, "LayerNormalization") and _constant(node) is not None
        # a changed constant would hide a written-out activation from runtimes
        is_end = is_end and not _activations.is_part(node)
        for inputs in () if is_end and self.near else _ways(node):
            kept = dict(self.through), dict(self.ends)
            if all(self.reaches(one) for one in inputs):
                self.through[node] = inputs
                return True
            # the failed way must leave no nodes behind
            self.through, self.ends = kept
        if is_end:
            self.ends[value] = None
        return is_end

    def spread(self, value: ir.Value, factor: _Array, readers: Sequence[ir.Node]) -> bool:
        """Computes the factor of each value on the way; returns whether all readers of each value agree."""
        self.factors[value] = factor
        allowed = {*self.through, *readers}
        for node, inputs in reversed(list(self.through.items())):
            carried = [output for output in node.outputs if output in self.factors]
            if any(output.is_graph_output() or not allowed.issuperset(output.consumers()) for output in carried):
                return False
            for one in inputs:
                found = _before(node, [self.factors.get(output) for output in node.outputs])
                known = self.factors.get(one)
                if found is None or (known is not None and not _equal(known, found)):
                    return False
                self.factors[one] = found
        (end,) = self.ends
        if end not in self.factors or end.is_graph_output() or not allowed.issuperset(end.consumers()):
            return False
        return all(self._reads(node) == len(inputs) for node, inputs in self.through.items()) and all(
            self._reads(reader) == 1 for reader in readers
        )

    def _reads(self, node: ir.Node) -> int:
        """Counts the inputs of a node with the factor: x * x would contain it twice."""
        return sum(value in self.factors for value in node.inputs)


_BACK = (
    *("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Split", "Neg", "Slice", "Identity", "Gather"),
    *("GatherElements", "GatherND", "Expand", "Tile", "ReduceMean", "ReduceSum"),
)
_BOTH = ("Add", "Sub", "Concat")
_EITHER = ("Mul", "Div", "MatMul")


def _ways(node: ir.Node) -> list[tuple[ir.Value, ...]]:
    """Returns the alternative sets of inputs that must contain the factor so that the result contains it."""
    inputs = tuple(value for value in node.inputs if value is not None)
    if node.op_type in _BOTH:
        return [inputs]
    if node.op_type in ("Mul", "MatMul"):
        return [(one,) for one in inputs if not facts.is_constant(one)]
    return [] if node.op_type == "LayerNormalization" else [inputs[:1]]


def _equal(a: _Array, b: _Array) -> bool:
    return (a.size == b.size == 1 and a.item() == b.item()) or np.array_equal(a, b)


def _before(node: ir.Node, after: Sequence[_Array | None]) -> _Array | None:
    """Returns the factor of a node's input for these factors of its results; None if there is none."""
    known = [factor for factor in after if factor is not None]
    rank = len(facts.dims(node.inputs[0]) or ())
    if node.op_type == "Split":
        return _joined(node, after, known)
    factor = known[0]
    if factor.size == 1:
        return factor
    dims = facts.dims(node.outputs[0])
    if dims is None or factor.ndim != len(dims):
        return None
    varies = [axis for axis, size in enumerate(factor.shape) if size > 1]
    match node.op_type:
        case "Neg" | "Identity":
            return factor
        case "Add" | "Sub" | "Mul" | "Div":
            return factor if all(facts.same(facts.dims(one), dims) for one in node.inputs[:1]) else None
        case "Concat":
            return None if integer(node, "axis", 0) in (None, *varies, *(a - len(dims) for a in varies)) else factor
        case "Transpose":
            perm = _views.perm(node)
            return None if perm is None else factor.transpose([perm.index(axis) for axis in range(rank)])
        case "Reshape":
            return _reshaped(node, factor, varies)
        case _:
            return None


def _joined(node: ir.Node, after: Sequence[_Array | None], known: Sequence[_Array]) -> _Array | None:
    """Joins the factors of the parts of a Split; a part without a factor gets 1."""
    parts = _split.parts(node)
    rank = len(facts.dims(node.inputs[0]) or ())
    if parts is None:
        return None
    everywhere = len(known) == len(after) and all(_equal(known[0], other) for other in known)
    if everywhere and (known[0].size == 1 or known[0].shape[parts[0]] == 1):
        return known[0]
    full = [
        np.ones((1,) * rank) if one is None else one.reshape((1,) * rank) if one.size == 1 else one for one in after
    ]
    common = list(np.broadcast_shapes(*((*one.shape[: parts[0]], 1, *one.shape[parts[0] + 1 :]) for one in full)))
    blocks = []
    for one, size in zip(full, parts[1], strict=True):
        common[parts[0]] = size
        blocks.append(np.broadcast_to(one, common))
    return np.concatenate(blocks, axis=parts[0])


def _reshaped(node: ir.Node, factor: _Array, varies: Sequence[int]) -> _Array | None:
    """Returns the factor before a Reshape. The Reshape must not mix the axes along which the factor varies with
    others."""
    before, after = facts.dims(node.inputs[0]), facts.dims(node.outputs[0])
    if before is None or after is None:
        return None
    for front in range(min(varies), -1, -1):
        new, old = _numbers(after[front:]), list[int]()
        while new and math.prod(old) < math.prod(new) and len(old) < len(before):
            old = _numbers(before[len(before) - len(old) - 1 :])
            if not old:
                break
        if new and old and math.prod(old) == math.prod(new):
            spread = np.broadcast_to(factor.reshape(factor.shape[front:]), new).reshape(old)
            return _narrow(spread).reshape((1,) * (len(before) - len(old)) + _narrow(spread).shape)
    return None


def _numbers(dims: Sequence[facts.Element | None]) -> list[int]:
    """Returns the dimensions if all of them are numbers above 0, otherwise an empty list."""
    numbers = [dim for dim in dims if isinstance(dim, int) and dim > 0]
    return numbers if len(numbers) == len(dims) else []


def _narrow(array: _Array) -> _Array:
    """Returns the array with size 1 for axes along which it does not vary."""
    for axis in range(array.ndim):
        line = array.take([0], axis)
        if np.array_equal(np.broadcast_to(line, array.shape), array):
            array = line
    return array


def _constant(node: ir.Node) -> ir.Value | None:
    """Returns the constant factor of a product, divisor of a quotient, or scale of a normalisation."""
    places = (0, 1) if node.op_type in ("Mul", "MatMul") else (1,)
    found = [node.inputs[place] for place in places if facts.constant(node.inputs[place]) is not None]
    return found[0] if len(found) == 1 and facts.constant(found[0]).dtype.kind == "f" else None  # type: ignore[union-attr]


def _into(end: ir.Value, factor: _Array, reader: ir.Node) -> _Sink | NoMatch | None:
    """Returns the sink at the value where the search ends."""
    found = linear(end, reader, *LINEAR)
    if isinstance(found, Linear):
        scale = factor.reshape(()) if factor.size == 1 else factor
        folded = fold(found, Step(end, scale, np.zeros(())), end, underflow=False)
        if isinstance(folded, NoMatch):
            return folded
        kept: Folded = folded
        source = found.node.inputs[0]
        return _Sink(end, found.nodes, lambda tape: kept.write(tape, source))
    node = end.producer()
    assert node is not None
    return _scaled(end, node, factor)


def _scaled(end: ir.Value, node: ir.Node, factor: _Array) -> _Sink | NoMatch | None:
    """Returns the sink of a node whose constants can take the factor."""
    places = [index for index, value in enumerate(node.inputs) if value is _constant(node)]
    if node.op_type == "LayerNormalization":
        places = [index for index in (1, 2) if index < len(node.inputs) and node.inputs[index] is not None]
    new: dict[int, ir.TensorProtocol] = {}
    for place in places:
        value = node.inputs[place]
        array = facts.constant(value)
        if array is None or value is None:
            return NoMatch("a scale or a bias is not constant", node)
        if node.op_type == "MatMul" and factor.size > 1:
            return None
        if node.op_type != "LayerNormalization" and _shows(node, array, factor):
            return NoMatch("the intermediate result overflows or becomes 0 where the final result does not", value)
        product = _constant_product(array, 1 / factor if node.op_type == "Div" else factor, end)
        if product is None:
            return NoMatch("the factor cannot be multiplied into the constant", value)
        freed = array.nbytes if len(value.uses()) == 1 else 0
        if product.nbytes > freed + _SLACK:
            return NoMatch("the constant would need more memory", value)
        new[place] = ir.tensor(product, name=f"{value.name}_scaled")
    inputs = list(node.inputs)

    def write(tape: ir.tape.Tape) -> ir.Value:
        made = [tape.initializer(new[place]) if place in new else value for place, value in enumerate(inputs)]
        return tape.op(node.op_type, made, dict(node.attributes))

    return _Sink(end, (node,), write)


def _shows(node: ir.Node, array: npt.NDArray[Any], factor: _Array) -> bool:
    """Whether an overflow or an underflow before the factor may be visible behind it."""
    first, limits = array.astype(np.float64), np.finfo(array.dtype)
    if node.op_type == "MatMul":
        return leaves_range(np.abs(first).max(initial=0), factor, limits)
    if node.op_type == "Div":
        with np.errstate(divide="ignore"):  # a divisor of 0 gives infinity, which is out of every range
            first = 1 / first
    (data,) = (value for value in node.inputs if value is not None and facts.constant(value) is None)
    return loses_factor(first) or largest(data) > room_for_factor(first, factor, limits)


def _constant_product(array: npt.NDArray[Any], factor: _Array, beside: ir.Value) -> npt.NDArray[Any] | None:
    """Returns the constant times the factor, in its dtype. None if a number leaves the normal range, or if the constant
    would no longer broadcast to `beside`."""
    dims = facts.dims(beside)
    shape = factor.reshape(()) if factor.size == 1 else factor
    while shape.ndim > array.ndim and shape.shape[0] == 1:
        shape = shape[0]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        exact = array.astype(np.float64) * shape
    if dims is None or exact.ndim > len(dims):
        return None
    size, limits = np.abs(exact), np.finfo(array.dtype)
    fits = (size <= limits.max) & ((size >= limits.tiny) | (exact == 0))
    return exact.astype(array.dtype) if fits.all() else None
