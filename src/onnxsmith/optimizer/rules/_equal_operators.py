"""Finds values made by equal operators, so that one operator can make their concatenation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.attribute_keys import literals
from onnxsmith.graph.structure.uses import is_read_outside
from onnxsmith.optimizer.rules._layout import ELEMENTWISE, perm_of

Row = tuple[ir.Value, ...]
Inputs = tuple[Row | ir.Value | None, ...]
"""Inputs of the new operator: rows, which are concatenated in turn, and values that all operators share."""
_MOST = 16
"""The most steps of one search. A choice that bounds the cost."""


class Alike:
    """A row of values, the equal operators that make it, the equal operators that make their inputs, and so on.
    `reader` is the Concat of the first row."""

    def __init__(self, reader: ir.Node, row: Row, axis: int) -> None:
        self._reader = reader
        self._row = row
        self._left_out: set[ir.Node] = set()
        while True:
            self.steps: dict[Row, tuple[tuple[ir.Node, ...], Inputs]] = {}
            self.leaves: dict[Row, int] = {}
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

    def _grow(self, row: Row, axis: int) -> None:
        if row in self.steps or row in self.leaves:
            return
        found = self._step(row, axis) if len(self.steps) < _MOST else None
        if found is None:
            self.leaves[row] = axis
            return
        nodes, inputs, inner = found
        self.steps[row] = (nodes, inputs)
        for one in inputs:
            if isinstance(one, tuple):
                self._grow(one, inner)

    def _step(self, row: Row, axis: int) -> tuple[tuple[ir.Node, ...], Inputs, int] | None:
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
        inputs: list[Row | ir.Value | None] = []
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
        new: dict[Row, ir.Value] = {}

        def built(row: Row) -> ir.Value:
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


def _are_parts(values: Sequence[ir.Value], row: Row, axis: int) -> bool:
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
