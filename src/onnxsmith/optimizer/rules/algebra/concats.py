"""Joins and removes `Concat`, and moves equal operators behind it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.attribute_keys import literals
from onnxsmith.graph.structure.uses import is_read_outside
from onnxsmith.optimizer.rules._layout import ELEMENTWISE, perm_of
from onnxsmith.optimizer.rules._pattern_rule import PatternRule
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ConcatBranches(Rule):
    """Concat(f(a), f(b)) is f(Concat(a, b)) if f is an element-wise operator, a Clip, a Transpose, or several of them,
    as in a · Sigmoid(a). f may have inputs that all parts share and that do not vary along the axis. The rule also
    applies to some neighbouring parts only. Fires if it takes fewer nodes.

    Refused:
    1. It takes as many nodes as before, because f has several inputs, and each must be concatenated.

    Stops at intermediate results with other readers, and at operators whose attributes differ between parts.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[4,1] x, float[4,2] z) => (float[4,3] y) {
            a = Sigmoid(x)
            b = Mul(x, a)
            c = Sigmoid(z)
            d = Mul(z, c)
            y = Concat <axis = 1> (b, d)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[4,1] x, float[4,2] z) => (float[4,3] y) {
            a = Concat <axis = 1> (x, z)
            b = Sigmoid(a)
            y = Mul(a, b)
        }
    """

    anchor = ("Concat",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        dims, axis = facts.dims(node.outputs[0]), integer(node, "axis", 1)
        if dims is None or axis is None or not -len(dims) <= axis < len(dims):
            return None
        refusal = None
        for start, row in _rows(node):
            alike = _Alike(node, row, axis % len(dims))
            more = len(row) < len(node.inputs)
            saved = len(alike.nodes()) - len(alike.steps) - len(alike.leaves) + (not more)
            if alike.steps and saved > 0:
                return Match(node, (node, *alike.nodes()), {"alike": alike, "start": start, "count": len(row)})
            if alike.steps and not more:
                refusal = NoMatch("the result would have as many nodes")
        return refusal

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        alike: _Alike = match.found["alike"]
        start, count = match.found["start"], match.found["count"]
        whole = alike.build(tape)
        if count == len(match.node.inputs):
            return whole
        inputs = [*match.node.inputs[:start], whole, *match.node.inputs[start + count :]]
        return tape.op("Concat", inputs, dict(match.node.attributes))


def _rows(node: ir.Node) -> Iterator[tuple[int, _Row]]:
    """Yields neighbouring inputs that operators of the same type make, with the position of the first."""

    def made_by(value: ir.Value | None) -> str:
        maker = value.producer() if value is not None else None
        return "" if maker is None else maker.op_type

    start = 0
    for op_type, group in itertools.groupby(node.inputs, made_by):
        row = tuple(value for value in group if value is not None)
        if op_type and len(row) > 1:
            yield start, row
        start += len(row)


_Row = tuple[ir.Value, ...]
_Inputs = tuple[_Row | ir.Value | None, ...]
"""Holds the inputs of the new operator: rows, which are concatenated in turn, and values that all operators share."""
_MOST_STEPS = 16
"""Limits the steps of one search. A choice that bounds the cost."""


class _Alike:
    """Finds the equal operators that make a row of values, the equal operators that make their inputs, and so on.
    `reader` is the Concat of the first row."""

    def __init__(self, reader: ir.Node, row: _Row, axis: int) -> None:
        self._reader = reader
        self._row = row
        self._left_out: set[ir.Node] = set()
        while True:
            self.steps: dict[_Row, tuple[tuple[ir.Node, ...], _Inputs]] = {}
            self.leaves: dict[_Row, int] = {}
            self._grow(row, axis)
            outside = set(self._read_outside())
            if not outside:
                break
            self._left_out |= outside

    def nodes(self) -> list[ir.Node]:
        """Returns the nodes that one new operator for each step replaces."""
        return [node for nodes, _ in self.steps.values() for node in nodes]

    def _read_outside(self) -> Iterator[ir.Node]:
        every = self.nodes()
        inside = {*every, self._reader}
        for node in every:
            if is_read_outside(node.outputs[0], inside):
                yield node

    def _grow(self, row: _Row, axis: int) -> None:
        if row in self.steps or row in self.leaves:
            return
        found = self._step(row, axis) if len(self.steps) < _MOST_STEPS else None
        if found is None:
            self.leaves[row] = axis
            return
        nodes, inputs, inner = found
        self.steps[row] = (nodes, inputs)
        for one in inputs:
            if isinstance(one, tuple):
                self._grow(one, inner)

    def _step(self, row: _Row, axis: int) -> tuple[tuple[ir.Node, ...], _Inputs, int] | None:
        """Returns the operators that make a row, their inputs, and the axis of the inputs that corresponds to
        `axis`."""
        nodes = tuple(node for node in (value.producer() for value in row) if node is not None)
        if len(set(nodes)) < len(row) or self._left_out.intersection(nodes):
            return None
        if len({node.inputs for node in nodes}) < len(nodes):  # share/nodes merges equal nodes
            return None
        if any(node.graph is not self._reader.graph or not _is_twin(nodes[0], node) for node in nodes):
            return None
        inner = _axis_before(nodes[0], axis)
        if inner is None:
            return None
        inputs: list[_Row | ir.Value | None] = []
        for index, first in enumerate(nodes[0].inputs):
            values = [node.inputs[index] for node in nodes]
            same = all(value is first for value in values)
            several = nodes[0].op_type in ELEMENTWISE and len(nodes[0].inputs) > 1
            if same and (index > 0 or several) and _is_flat(first, row[0], axis if several else None):
                inputs.append(first)
                continue
            parts = tuple(value for value in values if value is not None)
            if len({value.dtype for value in parts}) > 1:
                return None  # Casts from different dtypes, which no Concat takes
            if len(parts) < len(row) or (several and not _are_parts(parts, row, axis)) or (index > 0 and not several):
                return None
            inputs.append(parts)
        return nodes, tuple(inputs), inner

    def build(self, tape: ir.tape.Tape) -> ir.Value:
        """Writes the new operators, and returns the concatenation of the first row."""
        new: dict[_Row, ir.Value] = {}

        def built(row: _Row) -> ir.Value:
            if row in new:
                return new[row]
            if row in self.leaves:
                new[row] = tape.op("Concat", list(row), {"axis": self.leaves[row]})
            else:
                nodes, inputs = self.steps[row]
                values = [built(one) if isinstance(one, tuple) else one for one in inputs]
                new[row] = tape.op(nodes[0].op_type, values, dict(nodes[0].attributes))
            return new[row]

        return built(self._row)


def _is_twin(one: ir.Node, other: ir.Node) -> bool:
    if one is other:
        return len(one.outputs) == 1 and not one.domain
    alike = one.op_type == other.op_type and not other.domain and len(one.inputs) == len(other.inputs)
    if not alike or len(other.outputs) != 1:
        return False
    found = literals(one)
    return found is not None and found == literals(other)


def _axis_before(node: ir.Node, axis: int) -> int | None:
    """Returns the axis of the first input that becomes `axis` of the result; None if the operator mixes axes."""
    if node.op_type in ELEMENTWISE or node.op_type == "Clip":
        return axis if facts.opset(node) >= 7 else None
    if node.op_type == "Transpose":
        perm = perm_of(node)
        return None if perm is None else perm[axis]
    return None


def _is_flat(value: ir.Value | None, result: ir.Value, axis: int | None) -> bool:
    """Whether a value that all parts share also fits their concatenation: it does not vary along the axis."""
    if value is None or axis is None:
        return True
    dims, full = facts.dims(value), facts.dims(result)
    if dims is None or full is None or len(dims) > len(full):
        return False
    place = axis - (len(full) - len(dims))
    return place < 0 or dims[place] == 1


def _are_parts(values: Sequence[ir.Value], row: _Row, axis: int) -> bool:
    """Whether the values have the results' sizes along the axis, and equal sizes along the other axes."""
    every, results = [facts.dims(value) for value in values], [facts.dims(value) for value in row]
    first = every[0]
    if first is None or not 0 <= axis < len(first):
        return False
    rest = (*first[:axis], *first[axis + 1 :])
    for dims, result in zip(every, results, strict=True):
        if dims is None or result is None or len(dims) != len(first) or len(result) != len(dims):
            return False
        if dims[axis] is None or dims[axis] != result[axis] or not facts.same((*dims[:axis], *dims[axis + 1 :]), rest):
            return False
    return True


class ConcatChain(Rule):
    """Concat(Concat(a, b), c) along one axis is Concat(a, b, c).

    Refused:
    1. The first Concat has other readers, or is a graph output: its inputs would be copied twice.
    2. The second Concat reads the first several times, and would have more inputs than both together. In a chain of
       such Concats the number of inputs would double each time.

    No match: different axes; an axis that counts from the end of a value of unknown rank.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1] x, float[N,2] z) => (float[N,6] y) {
            a = Concat <axis = 1> (x, z)
            y = Concat <axis = -1> (z, a, x)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1] x, float[N,2] z) => (float[N,6] y) {
            y = Concat <axis = -1> (z, x, z, x)
        }
    """

    anchor = ("Concat",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        inputs: list[ir.Value | None] = []
        inner: list[ir.Node] = []
        refusal = None
        for value in node.inputs:
            made = maker(value, node, "Concat")
            if made is None or not _same_axis(made, node) or value is None:
                inputs.append(value)
            elif value.is_graph_output() or list(value.consumers()) != [node]:
                refusal = NoMatch("the concatenated tensor is also used elsewhere", value)
                inputs.append(value)
            else:
                inputs.extend(made.inputs)
                inner.append(made)
        if not inner:
            return refusal
        if len(inputs) > len(node.inputs) + sum(len(made.inputs) for made in set(inner)):
            return NoMatch("the same parts would be copied several times")
        return Match(node, (node, *dict.fromkeys(inner)), {"inputs": inputs})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Concat", match.found["inputs"], dict(match.node.attributes))


def _same_axis(one: ir.Node, other: ir.Node) -> bool:
    axes = [integer(node, "axis", 1) for node in (one, other)]
    if axes[0] is None or axes[1] is None:
        return False
    if axes[0] == axes[1]:
        return True
    dims = facts.dims(one.outputs[0])
    return dims is not None and len(dims) > 0 and (axes[0] - axes[1]) % len(dims) == 0


class ConcatSingle(PatternRule):
    """A Concat with one input gives that input. The first layer of a DenseNet's block joins a list of one tensor.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            a = Concat <axis = 0> (x)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = Relu(x)
        }
    """

    anchor = ("Concat",)
    exactness = Exactness.BITWISE
    pattern = "Concat(x)"
    replacement = "x"
