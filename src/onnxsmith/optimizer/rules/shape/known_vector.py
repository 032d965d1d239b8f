"""A computed vector of known sizes becomes a `Concat` of the vectors that contain them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.uses import freed
from onnxsmith.graph.structure.value_replacement import can_be_output
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_MOST_NODES = 32
"""The most nodes that one search visits. A choice that bounds the cost."""


@dataclass(frozen=True)
class _Part:
    """Neighbouring elements of the vector: all elements of `value`, or numbers."""

    value: ir.Value | None
    numbers: tuple[int, ...] = ()


class KnownVector(Rule):
    """If every element of a computed vector is a known number, or a size in a vector from which it is computed, the
    vector is a Concat of these. torch replaces -1 in the target of an Expand by Equal and Where, and splits shapes into
    scalars and joins them again; none of that is needed.

    Refused:
    1. The rewrite would add as many nodes as it removes.

    No match: vectors with an unknown element, or with a computed element (`2*batch`) that no earlier vector contains.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1] x, float[1,8] c) => (float[N,8] y)
        <int64[1] m = {-1}, int64[2] ms = {-1, -1}, int64[2] ones = {1, 1}> {
            s = Shape <start = 0, end = 1> (x)
            t = Concat <axis = 0> (s, m)
            q = Equal(t, ms)
            w = Where(q, ones, t)
            y = Expand(c, w)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1] x, float[1,8] c) => (float[N,8] y) <int64[1] one = {1}> {
            s = Shape <start = 0, end = 1> (x)
            w = Concat <axis = 0> (s, one)
            y = Expand(c, w)
        }
    """

    anchor = ("Concat", "Expand", "Gather", "Max", "Min", "Mul", "Reshape", "ScatterND", "Slice", "Where")
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        value = node.outputs[0]
        elements = facts.integers(value) if value.dtype is ir.DataType.INT64 else None
        if elements is None or facts.dims(value) != (len(elements),):
            return None
        if all(isinstance(element, int) for element in elements):
            return None
        parts = _parts(elements, list(_held(node)))
        if parts is None:
            return None
        kept = {part.value for part in parts if part.value is not None}
        is_node = len(parts) > 1 or not _stands_for(value, parts[0].value)
        if is_node >= freed(node, kept=kept):
            plain = node.op_type == "Concat" and kept.issuperset(_computed(node))
            return None if plain else NoMatch("it would take as many nodes as it frees")
        return Match(node, (node,), {"parts": parts})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        values = [
            part.value if part.value is not None else _views.integers(tape, part.numbers, None)
            for part in match.found["parts"]
        ]
        return values[0] if len(values) == 1 else tape.op("Concat", values, {"axis": 0})


def _stands_for(old: ir.Value, new: ir.Value | None) -> bool:
    """Whether `new` can replace `old` without an Identity."""
    maker = old.producer()
    return not old.is_graph_output() or (new is not None and maker is not None and can_be_output(new, maker.graph))


def _computed(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.inputs if value is not None and facts.constant(value) is None]


def _held(node: ir.Node) -> Iterator[tuple[ir.Value, tuple[facts.Element, ...]]]:
    """Yields the vectors from which a node is computed, the nearest first, with their elements."""
    seen: set[ir.Node] = {node}
    queue = [node]
    for one in queue:
        for value in _computed(one):
            elements = facts.integers(value) if value.dtype is ir.DataType.INT64 else None
            if elements is not None and facts.dims(value) == (len(elements),):
                yield value, elements
            maker = value.producer()
            follows = maker is not None and maker.op_type != "Shape" and maker not in seen and not maker.domain
            if follows and maker is not None and maker.graph is node.graph and len(queue) < _MOST_NODES:
                seen.add(maker)
                queue.append(maker)


def _parts(
    elements: Sequence[facts.Element], held: Sequence[tuple[ir.Value, tuple[facts.Element, ...]]]
) -> list[_Part] | None:
    """Splits the elements into numbers and vectors; each vector covers as many elements as possible."""
    parts: list[_Part] = []
    at = 0
    while at < len(elements):
        fitting = [
            (len(found), value)
            for value, found in held
            if found == tuple(elements[at : at + len(found)]) and any(isinstance(one, str) for one in found)
        ]
        element = elements[at]
        if fitting:
            length, value = max(fitting, key=lambda one: one[0])
            parts.append(_Part(value))
            at += length
        elif isinstance(element, int):
            numbers = parts.pop().numbers if parts and parts[-1].value is None else ()
            parts.append(_Part(None, (*numbers, element)))
            at += 1
        else:
            return None
    return parts
