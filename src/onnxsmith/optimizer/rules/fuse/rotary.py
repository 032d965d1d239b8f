"""Fuses rotary position embedding that is written out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.uses import freed
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer, maker, read_elsewhere, too_old, two_ways
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_DTYPES = (ir.DataType.FLOAT16, ir.DataType.FLOAT)
_UNARY = ("Cast", "Cos", "Neg", "Sin")


@dataclass(frozen=True)
class _Cache:
    """Describes cosines or sines whose two halves along the last axis are equal. `source` is one half, or a whole
    constant. `above` are the nodes that compute the result from it, the first step first. `batch` is the number of
    rows."""

    value: ir.Value
    batch: facts.Element | None
    source: ir.Value
    above: tuple[ir.Node, ...]

    @property
    def is_constant(self) -> bool:
        return facts.is_constant(self.source)

    @property
    def rank(self) -> int:
        return len(facts.dims(self.source) or ())

    @property
    def cost(self) -> int:
        """Counts the nodes that compute one half, of shape [batch, sequence, half]."""
        return len(self.above) + (not self.is_constant and self.rank != 3)

    def half(self, tape: ir.tape.Tape) -> ir.Value:
        """Writes one half, of shape [batch, sequence, half]."""
        value = self.source
        array = facts.constant(value)
        if array is not None:
            rows = array.reshape(-1, *array.shape[-2:])[..., : array.shape[-1] // 2]
            half = ir.Tensor(np.ascontiguousarray(rows), dtype=value.dtype)
            value = tape.initializer(half, name=f"{value.name or 'cache'}_half")
        elif self.rank != 3:
            op_type, axis = ("Squeeze", 1) if self.rank == 4 else ("Unsqueeze", 0)
            value = tape.op(op_type, [value, _views.integers(tape, [axis], None)])
        for node in self.above:
            inputs = [value, *(one for one in node.inputs if facts.constant(one) is not None)]
            value = tape.op(node.op_type, inputs, dict(node.attributes))
        return value


@dataclass(frozen=True)
class _Written:
    """Describes source * cos + turned(source) * sin, of four axes, and its nodes, the last first."""

    source: ir.Value
    cos: ir.Value
    sin: ir.Value
    nodes: tuple[ir.Node, ...]


@dataclass(frozen=True)
class _Rotation:
    """Describes a rotation that may be rewritten. `nodes` are its nodes, the last first."""

    source: ir.Value
    batch: facts.Element | None
    caches: tuple[_Cache, _Cache]
    nodes: tuple[ir.Node, ...]

    @property
    def is_spread(self) -> bool:
        """Whether the caches have one row for all rows of the batch."""
        return any(cache.batch != self.batch for cache in self.caches)

    @property
    def cost(self) -> int:
        """Counts the nodes in the replacement."""
        spread = 0 if not self.is_spread else 2 if isinstance(self.batch, int) else 4
        return 1 + spread + sum(cache.cost for cache in self.caches)

    @property
    def gain(self) -> int:
        """Counts the nodes that the rewrite makes redundant."""
        return freed(self.nodes[0], kept=(self.source, *(cache.source for cache in self.caches)))


class Rotary(Rule):
    """x * cos + Concat(-x[half:], x[:half]) * sin rotates pairs of features by an angle that depends on their position:
    RotaryEmbedding (J. Su and others, 2021), in the form of Llama. The operator takes one half of the cosines and of
    the sines, for each row of the batch. A single row for all is expanded.

    Refused:
    1. The model's opset is below 23, which introduced RotaryEmbedding.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float16 or float.
    4. The two halves of the cosines or of the sines are not provably equal: they are neither a Concat of a value with
       itself, with Cos, Sin, Cast, Neg, a factor or Unsqueeze after it, nor a constant.
    5. Cosines and sines are not provably as long as the sequence, the same for every head, and given for each row of
       the batch or once for all rows.
    6. The rewrite would add as many nodes as it removes.

    No match: inputs without four axes, and pairs of neighbouring features.

    Before:
        <ir_version: 10, opset_import: ["": 23]>
        g (float[N,2,3,4] x, float[1,3,2] f) => (float[N,2,3,4] y) <int64[1] one = {1}, int64[2] sizes = {2, 2}> {
            e = Concat <axis = -1> (f, f)
            c = Cos(e)
            s = Sin(e)
            cu = Unsqueeze(c, one)
            su = Unsqueeze(s, one)
            p = Mul(x, cu)
            a, b = Split <axis = 3> (x, sizes)
            n = Neg(b)
            t = Concat <axis = -1> (n, a)
            q = Mul(t, su)
            y = Add(p, q)
        }

    After:
        <ir_version: 10, opset_import: ["": 23]>
        g (float[N,2,3,4] x, float[1,3,2] f) => (float[N,2,3,4] y) <int64[2] ones = {1, 1}> {
            c = Cos(f)
            s = Sin(f)
            n = Shape <start = 0, end = 1> (x)
            r = Concat <axis = 0> (n, ones)
            cr = Expand(c, r)
            sr = Expand(s, r)
            y = RotaryEmbedding(x, cr, sr)
        }
    """

    anchor = ("Add",)
    exactness = Exactness.REASSOCIATES
    makes = "RotaryEmbedding"

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _rotation(node)
        if not isinstance(found, _Rotation):
            return found
        if found.cost >= found.gain and not _goes(*(cache.value for cache in found.caches)):
            return NoMatch("the rewrite would need as many nodes as it removes")
        return Match(node, found.nodes, {"rotation": found})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        found: _Rotation = match.found["rotation"]
        halves = [cache.half(tape) for cache in found.caches]
        if found.is_spread:
            shape = _row_shape(tape, found)
            halves = [tape.op("Expand", [half, shape]) for half in halves]
        return tape.op("RotaryEmbedding", [found.source, *halves])


def _row_shape(tape: ir.tape.Tape, found: _Rotation) -> ir.Value:
    """Returns the shape [batch, 1, 1] as a tensor."""
    if isinstance(found.batch, int):
        return _views.integers(tape, [found.batch, 1, 1], None)
    size = tape.op("Shape", [found.source], {"start": 0, "end": 1})
    return tape.op("Concat", [size, _views.integers(tape, [1, 1], None)], {"axis": 0})


def _rotation(node: ir.Node) -> _Rotation | NoMatch | None:
    """Returns the rotation that ends at an Add, a refusal if it must not be rewritten, or None."""
    written = next(_written(node), None)
    if written is None:
        return None
    refusal = _refusal(written)
    if refusal is not None:
        return refusal
    caches = []
    for value in (written.cos, written.sin):
        found = _halved(value, node)
        if found is None:
            return NoMatch("the two halves of the table may differ", value)
        caches.append(_Cache(value, _four(value)[0], *found))
    return _Rotation(written.source, _four(written.source)[0], (caches[0], caches[1]), written.nodes)


def _written(node: ir.Node) -> Iterator[_Written]:
    """Yields the ways to read an Add as x * cos + Concat(-x[half:], x[:half]) * sin."""
    for plain_value, other in two_ways(node):
        plain, product = maker(plain_value, node, "Mul"), maker(other, node, "Mul")
        if plain is None or product is None:
            continue
        for value, sin in two_ways(product):
            turned = _turned(value, node)
            for source, cos in two_ways(plain):
                if turned is not None and source is turned[0]:
                    yield _Written(source, cos, sin, (node, plain, product, *turned[1]))


def _turned(value: ir.Value, reader: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """Returns x and the nodes, if a value is Concat(-x[half:], x[:half]) along the last of four axes; None
    otherwise."""
    joined = maker(value, reader, "Concat")
    if joined is None or len(joined.inputs) != 2 or integer(joined, "axis", 0) not in (3, -1):
        return None
    negative, split = maker(joined.inputs[0], reader, "Neg"), maker(joined.inputs[1], reader, "Split")
    if negative is None or split is None or len(split.outputs) != 2 or integer(split, "axis", 0) not in (3, -1):
        return None
    source, halves = split.inputs[0], split.outputs
    dims, half = facts.dims(source), facts.dims(halves[0])
    if source is None or dims is None or half is None or len(dims) != 4 or len(half) != 4:
        return None
    if not isinstance(dims[3], int) or not isinstance(half[3], int) or 2 * half[3] != dims[3]:
        return None
    in_order = joined.inputs[1] is halves[0] and negative.inputs[0] is halves[1]
    return (source, (joined, negative, split)) if in_order else None


def _refusal(written: _Written) -> NoMatch | None:
    """Returns a refusal that does not depend on how cosines and sines are computed, or None."""
    node, source = written.nodes[0], written.source
    if source.dtype not in _DTYPES:
        return NoMatch("the dtype is not known to be float16 or float", source)
    refusal = too_old(node, "RotaryEmbedding", 23) or read_elsewhere(written.nodes)
    data = _four(source)
    for value in (written.cos, written.sin):
        dims = _four(value)
        if refusal is not None:
            break
        if dims[1] != 1 or not facts.same(dims[2:], data[2:]):
            refusal = NoMatch("the table may have another length than the data, or differ between heads", value)
        elif dims[0] != 1 and not facts.same(dims[:1], data[:1]):
            refusal = NoMatch("the table may have neither one row for each batch element nor one row for all", value)
    return refusal


def _four(value: ir.Value) -> _views.Dims:
    """Returns the dimensions [batch, heads, sequence, features] of a value that broadcasts to such data. Missing axes
    are 1, unknown dimensions None."""
    dims = facts.dims(value)
    return (None,) * 4 if dims is None else (*(1,) * (4 - len(dims)), *dims)


def _halved(value: ir.Value, reader: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
    """Returns the half, or the whole constant, from which a value with two equal halves is computed, and the nodes that
    compute it. Leaves out nodes that insert axes before the last two."""
    at: ir.Value | None = value
    above: tuple[ir.Node, ...] = ()
    while at is not None:
        rank = len(facts.dims(at) or ())
        if rank < 2:
            return None
        array = facts.constant(at)
        if array is not None:
            left, right = np.split(array, 2, axis=-1)
            return (at, above) if left.tobytes() == right.tobytes() else None
        node = maker(at, reader, *_UNARY, "Concat", "Mul", "Unsqueeze")
        if node is None:
            return None
        if node.op_type == "Concat":
            is_twice = len(node.inputs) == 2 and node.inputs[0] is node.inputs[1]
            half = node.inputs[0] if is_twice and integer(node, "axis", 0) in (rank - 1, -1) else None
            return None if half is None else (half, above)
        if node.op_type == "Unsqueeze":
            axes = _views.axes(node, rank)
            if axes is None or axes[-1] >= rank - 2:
                return None
            at = node.inputs[0]
            continue
        at = _scaled(node) if node.op_type == "Mul" else node.inputs[0]
        above = (node, *above)
    return None


def _scaled(node: ir.Node) -> ir.Value | None:
    """Returns the operand that a Mul multiplies by one constant number."""
    for value, other in two_ways(node):
        number = facts.constant(other)
        if number is not None and number.size == 1 and number.ndim <= 1:
            return value
    return None


def _goes(cos: ir.Value, sin: ir.Value) -> bool:
    """Whether only such rotations read cosines and sines, so that both are removed with the last rotation."""
    if cos.is_graph_output() or sin.is_graph_output():
        return False
    inside: set[ir.Node] = set()
    for reader in cos.consumers():
        ends = list(reader.outputs[0].consumers())
        written = next(_written(ends[0]), None) if len(ends) == 1 and ends[0].op_type == "Add" else None
        if written is None or written.cos is not cos or written.sin is not sin or _refusal(written) is not None:
            return False
        inside.update(written.nodes)
    return all(reader in inside for reader in sin.consumers())
