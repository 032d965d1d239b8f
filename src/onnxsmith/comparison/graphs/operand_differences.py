"""Compares the operands of a pair of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import AttributeChange
from onnxsmith.comparison.graphs import attribute_changes
from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing_view import View, trimmed
from onnxsmith.comparison.graphs.pairs import Same
from onnxsmith.graph.reading.exact_text import attribute_text, elements

_SHOWN = 16
"""How many elements are shown of an input that is an attribute in the other model. A choice: one line."""

Operand = ir.Value | None


@dataclass(frozen=True)
class Moved:
    """The parameters that are attributes of one node and inputs of the other. `slots` are their positions as inputs."""

    names: frozenset[str]
    slots: tuple[frozenset[int], frozenset[int]]
    changes: tuple[AttributeChange, ...]


def moved(a: View, b: View, one: ir.Node, other: ir.Node) -> Moved:
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


def pairs(
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
