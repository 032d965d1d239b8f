"""Compares the operands of pairs of nodes, and decides which pairs compute equal results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import AttributeChange
from onnxsmith.comparison.graphs import array_differences, attribute_changes
from onnxsmith.comparison.graphs.constant_recognition import Constants
from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing_view import View, trimmed
from onnxsmith.comparison.graphs.pairs import Pairs, Same
from onnxsmith.graph.reading.exact_text import attribute_text, elements
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk


def judged(
    a: View, b: View, pairs: Pairs, symbols: frozenset[str] | None = None
) -> Iterator[tuple[ir.Node, ir.Node, bool]]:
    """Yields the pairs of two graphs, in the order of the first, and whether both nodes are the same function of paired
    operands. Then the results are equal if the operands are.

    `symbols` are names of dimensions that mean the same in both graphs, if known. With them, a Reshape or Expand of one
    tensor to one shape counts as the same, however the shape was computed.
    """
    same = Same(a, b, pairs)
    for one in a.nodes:
        other = pairs.nodes.get(one)
        if other is not None:
            is_equal = _is_alike(a, b, one, other) and _reads_the_same(a, b, one, other, same)
            yield one, other, is_equal or (symbols is not None and _is_shaped_alike(a, b, one, other, same, symbols))


def _is_alike(a: View, b: View, one: ir.Node, other: ir.Node) -> bool:
    """Whether both nodes are the same function of their operands. Nodes with branches or a body are never alike,
    because these are not compared here."""
    if walk.has_subgraphs(one) or walk.has_subgraphs(other) or len(one.outputs) != len(other.outputs):
        return False
    if a.operator(one) != b.operator(other):
        return False
    if a.own(one, Level.EXACT) == b.own(other, Level.EXACT):
        return True
    moved = moved_operands(a, b, one, other)
    return not moved.changes and not any(attribute_changes.changes(one, other, (a.opsets, b.opsets), moved.names))


def _reads_the_same(a: View, b: View, one: ir.Node, other: ir.Node, same: Same) -> bool:
    moved = moved_operands(a, b, one, other)
    for _, x, y in operand_pairs(a, b, one, other, same, moved):
        if not same(x, y):
            return False
        if x is not None and y is not None and a.is_stored(x) and not _holds_the_same(a.side.constants, x, y):
            return False
    return True


def reads_equal_constants(a: View, b: View, one: ir.Node, other: ir.Node, same: Same) -> bool:
    """Whether two paired nodes read constants that are equal up to rounding."""
    moved = moved_operands(a, b, one, other)
    return all(
        x is None or y is None or not a.is_stored(x) or not b.is_stored(y) or _holds_the_same(a.side.constants, x, y)
        for _, x, y in operand_pairs(a, b, one, other, same, moved)
    )


def _holds_the_same(constants: Constants, x: ir.Value, y: ir.Value) -> bool:
    """Whether two constants are equal, up to rounding."""
    if constants.number(x, Level.EXACT) == constants.number(y, Level.EXACT):
        return True
    one, other = constants.tensor(x), constants.tensor(y)
    if one is None or other is None or one.dtype != other.dtype or one.dtype not in _FLOATS:
        return False
    try:
        return array_differences.within_rounding(np.asarray(one.numpy()), np.asarray(other.numpy()))
    except (OSError, ValueError):  # values that cannot be read are not known to be equal
        return False


_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
"""The dtypes that `rounded_weights.within` compares."""
_SHAPED = frozenset({"Reshape", "Expand"})
"""Operators whose result is determined by the first operand and the shape of the result."""


def _is_shaped_alike(a: View, b: View, one: ir.Node, other: ir.Node, same: Same, symbols: frozenset[str]) -> bool:
    if one.op_type not in _SHAPED or one.domain or a.operator(one) != b.operator(other):
        return False
    x, y = one.inputs[0], other.inputs[0]
    if x is None or y is None or a.is_stored(x) or not same(x, y):
        return False
    ours, theirs = facts.dims(one.outputs[0]), facts.dims(other.outputs[0])
    if ours is None or ours != theirs:
        return False
    return all(isinstance(dim, int) or (dim is not None and _names(dim) <= symbols) for dim in ours)


def _names(dim: str) -> set[str]:
    return facts.symbols(dim) - {dim} or {dim}


_SHOWN = 16
"""How many elements are shown of an input that is an attribute in the other model. A choice: one line."""

Operand = ir.Value | None


@dataclass(frozen=True)
class Moved:
    """The parameters that are attributes of one node and inputs of the other. `slots` are their positions as inputs."""

    names: frozenset[str]
    slots: tuple[frozenset[int], frozenset[int]]
    changes: tuple[AttributeChange, ...]


def moved_operands(a: View, b: View, one: ir.Node, other: ir.Node) -> Moved:
    """Finds parameters that are attributes in one version of an operator and inputs in the other."""
    first, second = attribute_changes.schema_at(one, a.opsets), attribute_changes.schema_at(other, b.opsets)
    if first is None or second is None or first.since == second.since:
        return Moved(frozenset(), (frozenset(), frozenset()), ())
    names: set[str] = set()
    slots: tuple[set[int], set[int]] = set(), set()
    changes: list[AttributeChange] = []
    for side, (holder, reader, view, schema) in enumerate(((other, one, a, first), (one, other, b, second))):
        for position, value in enumerate(reader.inputs):
            name = schema.input_name(position)
            held = holder.attributes.get(name)
            if value is None or held is None or name in reader.attributes or not view.is_stored(value):
                continue
            names.add(name)
            slots[side].add(position)
            tensor = view.side.constants.tensor(value)
            if tensor is None or not _equal(held, tensor):
                text = f"[{', '.join(elements(tensor, _SHOWN))}]" if tensor is not None else "?"
                texts = (text, attribute_text(held)) if side == 0 else (attribute_text(held), text)
                changes.append(AttributeChange(name, *texts))
    return Moved(frozenset(names), (frozenset(slots[0]), frozenset(slots[1])), tuple(changes))


def _equal(attribute: ir.Attr, tensor: ir.TensorProtocol) -> bool:
    values = attribute_changes.as_tensor_values(attribute)
    if values is None or tensor.size != len(values) or tensor.dtype == ir.DataType.STRING:
        return False
    array = np.asarray(tensor.numpy()).reshape(-1)
    return bool(np.array_equal(array, np.asarray(values).astype(array.dtype), equal_nan=array.dtype.kind == "f"))


def operand_pairs(
    a: View, b: View, one: ir.Node, other: ir.Node, same: Same, without: Moved
) -> Iterator[tuple[int, Operand, Operand]]:
    """Yields the operands in the same position of two nodes, with the position on the first side. Operands of a
    commutative operator are ordered so that equal ones meet."""
    ours = [None if n in without.slots[0] else value for n, value in enumerate(trimmed(one))]
    theirs = [None if n in without.slots[1] else value for n, value in enumerate(trimmed(other))]
    count = max(len(ours), len(theirs))
    ours += [None] * (count - len(ours))
    theirs += [None] * (count - len(theirs))
    if a.commutes(one) and b.commutes(other) and one.op_type == other.op_type:
        theirs = _fitted(a, b, ours, theirs, same)
    yield from ((n, *pair) for n, pair in enumerate(zip(ours, theirs, strict=True)))


def _fitted(a: View, b: View, ours: list[Operand], theirs: list[Operand], same: Same) -> list[Operand]:
    """Returns the second side's operands in the order of the first. Operands without a match fill the remaining
    places."""
    left = list(range(len(theirs)))
    places: dict[int, int] = {}
    for level in Level:
        for n, value in enumerate(ours):
            if n in places:
                continue
            fits = [m for m in left if _fits(a, b, value, theirs[m], same, level)]
            if fits:
                places[n] = n if n in fits else fits[0]
                left.remove(places[n])
    rest = iter(left)
    return [theirs[places[n]] if n in places else theirs[next(rest)] for n in range(len(ours))]


def _fits(a: View, b: View, x: Operand, y: Operand, same: Same, level: Level) -> bool:
    if x is None or y is None:
        return x is y
    if a.is_stored(x) and b.is_stored(y):
        if level is Level.BARE:
            return True
        return a.side.constants.number(x, level) == b.side.constants.number(y, level)
    return same(x, y)


def slot_name(node: ir.Node, position: int, opsets: Mapping[str, int]) -> str:
    """Returns the position of an operand, and its name in the specification: `input 1 (W)`."""
    known = attribute_changes.schema_at(node, opsets)
    name = known.input_name(position) if known is not None else ""
    return f"input {position}{f' ({name})' if name else ''}"
