"""Removes transposes around a region of operators that can work in another order of axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.uses import is_read_outside
from onnxsmith.optimizer.rules._layout import ELEMENTWISE, Moved, Perm, moved, perm_of
from onnxsmith.optimizer.rules._node_order import first
from onnxsmith.optimizer.rules._patterns import maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_MOST = 48
"""Limits the operators in one region. A choice that bounds the cost."""
_SMALL = 1024
"""Limits the bytes of constants that may be stored twice. A choice."""


class TransposeRegion(Rule):
    """A region of operators between transposes is computed in the other order of axes, if that needs fewer transposes.
    The region grows back from a Transpose through element-wise operators with their constants, reductions, Concat,
    Split, Pad, Slice, Gather, Softmax, Squeeze, Unsqueeze, MatMul by a constant matrix and LayerNormalization (for the
    axes that they leave alone), as long as only the region reads their results. At the border of the region, a value
    may need a new Transpose. None is needed if a Transpose makes the value, which is then removed or merged, or if an
    existing Transpose of the value gives the other order already.

    The result has at least one Transpose less and no other additional node, so the rule terminates.

    Refused:
    1. The region would need as many transposes as before.
    2. The existing Transpose that gives a value in the other order stands after the nodes that would read it.
    3. Constants of over 1 kB with other readers would be stored twice, and the file may not grow by that much
       (--max-growth).

    A row of operators with one input each is left to algebra/transpose-through-unary.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,3,C] x, float[A,C,3] z) => (float[A,3,C] y) <float[3] c = {1, 2, 3}> {
            a = Transpose <perm = [0, 2, 1]> (x)
            b = Mul(a, c)
            d = Add(b, z)
            e = Relu(b)
            f = Sub(d, e)
            y = Transpose <perm = [0, 2, 1]> (f)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,3,C] x, float[A,C,3] z) => (float[A,3,C] y) <float[1,3,1] c = {1, 2, 3}> {
            b = Mul(x, c)
            w = Transpose <perm = [0, 2, 1]> (z)
            d = Add(b, w)
            e = Relu(b)
            y = Sub(d, e)
        }
    """

    anchor = ("Transpose",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        perm = perm_of(node)
        if perm is None or node.inputs[0] is None or not _is_taken(node.inputs[0].producer(), node, perm):
            return None
        region = _Region(node)
        if not region.grow(node.inputs[0], perm) or region.is_row():
            return None
        gone = list(region.gone())
        if region.added() > len(gone):
            return None
        if region.added() == len(gone):
            more = len(gone) > 1
            return NoMatch("the rewrite would need as many transposes as it removes") if more else None
        twins = [twin for twin in region.twins.values() if first((twin, node)) is not twin]
        if twins:
            return NoMatch("a value in the other order is computed too late", twins[0])
        return Match(node, (gone[0], *region.nodes, *gone[1:]), {"region": region}, grows=region.copied())

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        region: _Region = match.found["region"]
        return region.build(tape)


def _is_taken(node: ir.Node | None, reader: ir.Node, perm: Perm) -> bool:
    """Whether the operator can be part of the region, if its reader needs its result permuted."""
    return node is not None and node.graph is reader.graph and moved(node, perm) is not None


class _Region:
    """Collects operators before a Transpose, with the permutation that each of their values needs so that the Transpose
    can be removed."""

    def __init__(self, anchor: ir.Node) -> None:
        self._anchor = anchor
        self._left_out: set[ir.Node] = set()
        self._clear()

    def _clear(self) -> None:
        self.nodes: dict[ir.Node, Moved] = {}
        self.twins: dict[ir.Value, ir.Node] = {}
        self._perms: dict[ir.Value, Perm] = {}

    def grow(self, value: ir.Value, perm: Perm) -> bool:
        """Adds all operators that can be in the region; returns False if no operator can."""
        while True:
            self._clear()
            self._value, self._perm = value, perm
            if not self._take(value, perm):
                return False
            read = {node for node in self.nodes if any(map(self._is_read_outside, node.outputs))}
            if not read:
                return bool(self.nodes)
            # grow again without nodes with other readers, which would be computed twice
            self._left_out |= read

    def _is_read_outside(self, value: ir.Value) -> bool:
        return is_read_outside(value, {*self.nodes, self._anchor})

    def _take(self, value: ir.Value, perm: Perm) -> bool:
        """Notes the permutation of the value, and adds its producer to the region if possible. Returns False if a value
        would need two permutations."""
        if value in self._perms:
            return self._perms[value] == perm
        self._perms[value] = perm
        if perm == tuple(range(len(perm))):
            return True
        if facts.is_constant(value):
            return value.dtype is not ir.DataType.STRING
        node = value.producer()
        if maker(value, self._anchor, "Transpose") is not None:
            return True
        twin = self._twin(value, perm)
        if twin is not None:
            self.twins[value] = twin
            return True
        found = None if node is None or node in self._left_out or len(self.nodes) >= _MOST else moved(node, perm)
        if found is None or node is None or node.graph is not self._anchor.graph:
            return True
        self.nodes[node] = found
        for output in node.outputs:
            if self._perms.setdefault(output, perm) != perm:
                return False
        taken = ((node.inputs[index], inner) for index, inner in found.inputs.items())
        return all(inner is None or self._take(inner, order) for inner, order in taken)

    def _twin(self, value: ir.Value, perm: Perm) -> ir.Node | None:
        """Returns an existing Transpose that permutes the value in the same way."""
        for reader in value.consumers():
            beside = reader.graph is self._anchor.graph and reader is not self._anchor
            if beside and reader.op_type == "Transpose" and not reader.domain and perm_of(reader) == perm:
                return reader
        return None

    def _leaves(self) -> Iterator[tuple[ir.Value, Perm]]:
        """Yields the values at the border that are not constants and need a permutation, with that permutation."""
        made = {output for node in self.nodes for output in node.outputs}
        for value, perm in self._perms.items():
            if value not in made and value not in self.twins and not facts.is_constant(value):
                yield value, perm

    def _through(self, value: ir.Value, perm: Perm) -> tuple[ir.Value, Perm]:
        """Returns the value that a Transpose at the border reads, and the permutation that this value needs. Returns
        other values as they are."""
        node = maker(value, self._anchor, "Transpose")
        inner = perm_of(node) if node is not None else None
        if node is None or inner is None or node.inputs[0] is None or perm == tuple(range(len(perm))):
            return value, perm
        return node.inputs[0], tuple(inner[axis] for axis in perm)

    def added(self) -> int:
        """Counts the new transposes."""
        needed = {self._through(value, perm) for value, perm in self._leaves()}
        return sum(perm != tuple(range(len(perm))) for _, perm in needed)

    def copied(self) -> int:
        """Counts the bytes of large constants with readers outside the region."""
        inside = {*self.nodes, self._anchor}
        moved = [value for value, perm in self._perms.items() if perm != tuple(range(len(perm)))]
        constants = (value for value in moved if facts.is_constant(value))
        shared = (one for one in constants if one.is_graph_output() or not inside.issuperset(one.consumers()))
        sizes = (tensor.nbytes for value in shared if (tensor := const_tensor(value)) is not None)
        return sum(size for size in sizes if size > _SMALL)

    def gone(self) -> Iterator[ir.Node]:
        """Yields the transposes that lose their last reader."""
        yield self._anchor
        for value, perm in self._leaves():
            node = value.producer()
            if node is not None and self._through(value, perm)[0] is not value and not self._is_read_outside(value):
                yield node

    def is_row(self) -> bool:
        """Whether the region is a row of operators with one input each between two transposes."""
        return all(node.op_type in ELEMENTWISE and len(node.inputs) == 1 for node in self.nodes) and not self.twins

    def build(self, tape: ir.tape.Tape) -> ir.Value:
        """Writes the region in the other order, and returns the replacement of the anchor's result."""
        new: dict[ir.Value, ir.Value] = {}
        transposed: dict[tuple[ir.Value, Perm], ir.Value] = {}

        def border(value: ir.Value, perm: Perm) -> ir.Value:
            if facts.is_constant(value):
                return _permuted(tape, value, perm)
            if value in self.twins:
                return self.twins[value].outputs[0]
            source, left = self._through(value, perm)
            if left == tuple(range(len(left))):
                return source
            if (source, left) not in transposed:
                transposed[source, left] = tape.op("Transpose", [source], {"perm": list(left)})
            return transposed[source, left]

        def built(value: ir.Value) -> ir.Value:
            if value not in new:
                node = value.producer()
                if node in self.nodes and self._perms[value] != tuple(range(len(self._perms[value]))):
                    new.update(zip(node.outputs, _copy(tape, node, self.nodes[node], built), strict=True))
                else:
                    new[value] = border(value, self._perms[value])
            return new[value]

        return built(self._value)


def _copy(tape: ir.tape.Tape, node: ir.Node, found: Moved, built: Callable[[ir.Value], ir.Value]) -> Sequence[ir.Value]:
    """Writes the node in the other order, and returns its results."""
    inputs = list(node.inputs) + [None] * (max(found.constants, default=-1) + 1 - len(node.inputs))
    for index, value in enumerate(inputs):
        if index in found.constants:
            inputs[index] = tape.initializer(ir.tensor(found.constants[index]), name=f"{node.op_type.lower()}_moved")
        elif index in found.inputs and value is not None:
            inputs[index] = built(value)
    attributes = {**node.attributes, **found.attributes}
    if len(node.outputs) == 1:
        return [tape.op(node.op_type, inputs, attributes)]
    return tape.op_multi_out(node.op_type, inputs, attributes, num_outputs=len(node.outputs))


def _permuted(tape: ir.tape.Tape, value: ir.Value, perm: Perm) -> ir.Value:
    """Returns the constant, extended to all permuted axes and permuted."""
    array = facts.constant(value)
    assert array is not None
    full = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    return tape.initializer(ir.Tensor(np.ascontiguousarray(full.transpose(perm))), name=f"{value.name}_transposed")
