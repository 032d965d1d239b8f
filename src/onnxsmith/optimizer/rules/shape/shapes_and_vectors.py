"""Reads shapes, their parts, and vectors of sizes from earlier values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.uses import freed
from onnxsmith.graph.structure.value_replacement import can_be_output
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import integer, maker, too_old
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule, is_sole_use

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found

_CHANGES = (*_views.VIEWS, "Expand", "Tile", "Transpose")


class ShapeBeforeView(PatternRule):
    """Shape of the result of a Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile or Transpose can read the operator's
    data instead, if the dimensions stand side by side there, too. The result then has fewer readers, so that other
    rules may remove it. Fires only if another node reads the result as well: otherwise only its shape is used.

    No match: dimensions that are all numbers, because these are constants already; dimensions that the data does not
    have side by side; opsets below 15, where Shape has no start and end.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H] x) => (int64[2] s, float[N,2,H,3] y)
        <int64[1] three = {3}, int64[4] r = {1, 1, 1, 3}> {
            a = Unsqueeze(x, three)
            y = Expand(a, r)
            s = Shape <start = 1, end = 3> (a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H] x) => (int64[2] s, float[N,2,H,3] y)
        <int64[1] three = {3}, int64[4] r = {1, 1, 1, 3}> {
            a = Unsqueeze(x, three)
            y = Expand(a, r)
            s = Shape <start = 1> (x)
        }
    """

    anchor = ("Shape",)
    exactness = Exactness.BITWISE
    pattern = "Shape(x)"
    replacement = "Shape <start = ?start, end = ?end> (source)"

    def check(self, found: Found) -> Answer:
        node, value = found.node, found["x"]
        before = maker(value, node, *_CHANGES)
        dims, sizes = facts.dims(value), facts.dims(before.inputs[0]) if before is not None else None
        if before is None or dims is None or sizes is None or facts.opset(node) < 15:
            return None
        start, end = integer(node, "start", 0), integer(node, "end", len(dims))
        if start is None or end is None or is_sole_use(value):
            return None
        wanted = dims[start:end]
        if not wanted or all(isinstance(dim, int) for dim in wanted):
            return None
        places = range(len(sizes) - len(wanted) + 1)
        place = next((at for at in places if facts.same(sizes[at : at + len(wanted)], wanted)), None)
        if place is None:
            return None
        end = place + len(wanted)
        return {"source": before.inputs[0], "start": place or None, "end": end if end < len(sizes) else None}


class ShapePart(Rule):
    """Shape has had a start and an end since opset 15. Slice(Shape(x)), a Gather of neighbouring dimensions, and the
    Unsqueeze of a single dimension are such a Shape. A single dimension that is read as a scalar is a Squeeze of such a
    Shape, if nothing else reads the whole shape. Equal parts of a shape then have the same form and can be shared. A
    part that is the whole shape is the Shape itself. Neighbouring parts that a Concat joins are one Shape again, if
    that saves a node; share/sizes joins them all if the result is no graph output.

    Refused:
    1. The opset is older than 15.

    Steps other than 1, dimensions that are not neighbours, and bounds that are not constants are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (int64[2] y) <int64[2] indices = {1, 2}> {
            s = Shape(x)
            y = Gather(s, indices)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x) => (int64[2] y) {
            y = Shape <start = 1> (x)
        }
    """

    anchor = ("Concat", "Gather", "Slice", "Unsqueeze", "Reshape")
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if node.op_type == "Concat":
            return _joined_sizes(node)
        gather = maker(node.inputs[0], node, "Gather") if node.op_type in ("Unsqueeze", "Reshape") else node
        shape = maker(gather.inputs[0], node, "Shape") if gather is not None else None
        source = shape.inputs[0] if shape is not None else None
        rank = len(facts.dims(source) or ())
        if gather is None or shape is None or source is None or not rank:
            return None
        axes = _axes_read(shape, rank)
        part = _part_of_axes(gather, axes)
        if part is None:
            return None
        is_scalar = facts.dims(node.outputs[0]) == ()
        if facts.dims(node.outputs[0]) != (len(part),) and not is_scalar:
            return None
        if is_scalar and not is_sole_use(shape.outputs[0]):
            return None
        nodes = dict.fromkeys((node, gather, shape))
        found = {"source": source, "bounds": _bounds(part, rank), "scalar": is_scalar}
        if part == axes:
            found["whole"] = shape.outputs[0]
            return Match(node, tuple(nodes), found)
        return too_old(node, "Shape with start and end", 15) or Match(node, tuple(nodes), found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        if "inputs" in match.found:
            values = [one if isinstance(one, ir.Value) else one.write(tape) for one in match.found["inputs"]]
            return values[0] if len(values) == 1 else tape.op("Concat", values, {"axis": 0})
        value: ir.Value | None = match.found.get("whole")
        if value is None:
            value = tape.op("Shape", [match.found["source"]], match.found["bounds"])
        return tape.op("Squeeze", [value]) if match.found["scalar"] else value


@dataclass(frozen=True)
class _Sizes:
    """Holds neighbouring dimensions of a value, and the nodes that read them."""

    source: ir.Value
    axes: range
    rank: int
    nodes: tuple[ir.Node, ...]

    @classmethod
    def of(cls, value: ir.Value | None, graph: ir.Graph | ir.Function | None) -> _Sizes | None:
        """Returns the dimensions that a Shape of this graph reads; None for other values."""
        shape = value.producer() if value is not None else None
        source = shape.inputs[0] if shape is not None and shape.op_type == "Shape" and not shape.domain else None
        rank = len(facts.dims(source) or ())
        if shape is None or shape.graph is not graph or source is None or not rank:
            return None
        axes = _axes_read(shape, rank)
        return cls(source, axes, rank, (shape,)) if len(axes) else None

    def then(self, other: _Sizes) -> _Sizes | None:
        """Joins two parts if `other` has the next dimensions of the same value."""
        if other.source is not self.source or other.axes.start != self.axes.stop:
            return None
        return _Sizes(self.source, range(self.axes.start, other.axes.stop), self.rank, (*self.nodes, *other.nodes))

    def write(self, tape: ir.tape.Tape) -> ir.Value:
        return tape.op("Shape", [self.source], _bounds(self.axes, self.rank))


def _joined_sizes(node: ir.Node) -> Match | None:
    """Matches a Concat in which some neighbouring inputs are neighbouring dimensions of one value."""
    inputs: list[_Sizes | ir.Value] = []
    for value in node.inputs:
        sizes = _Sizes.of(value, node.graph)
        last = inputs[-1] if inputs else None
        joined = last.then(sizes) if sizes is not None and isinstance(last, _Sizes) else None
        if joined is not None:
            inputs[-1] = joined
        elif value is not None:
            inputs.append(sizes if sizes is not None else value)
    # a part without a neighbour stays as it is
    kept = [one.nodes[0].outputs[0] if isinstance(one, _Sizes) and len(one.nodes) == 1 else one for one in inputs]
    new = [one for one in kept if isinstance(one, _Sizes)]
    nodes = dict.fromkeys(part for one in new for part in one.nodes)
    if not new or (len(kept) == 1 and not node.outputs[0].is_graph_output()):
        return None
    unread = [part for part in nodes if all(reader is node for reader in part.outputs[0].consumers())]
    unread = [part for part in unread if not part.outputs[0].is_graph_output()]
    saved = len(unread) + (len(kept) == 1) - len(new)
    return Match(node, (node, *nodes), {"inputs": kept}) if saved > 0 else None


def _axes_read(shape: ir.Node, rank: int) -> range:
    """Returns the axes whose sizes a Shape reads; none if they are unknown."""
    start, end = integer(shape, "start", 0), integer(shape, "end", rank)
    return range(0) if start is None or end is None else range(rank)[start:end]


def _bounds(part: range, rank: int) -> dict[str, int]:
    """Returns the attributes of a Shape, without default values."""
    return {**({"start": part.start} if part.start else {}), **({"end": part.stop} if part.stop < rank else {})}


def _part_of_axes(node: ir.Node, axes: range) -> range | None:
    """Returns the neighbouring axes, out of `axes`, whose dimensions a Gather or Slice takes."""
    if node.op_type == "Gather":
        indices = facts.integers(node.inputs[1])
        if indices is None or integer(node, "axis", 0) not in (0, -1):
            return None
        numbers = [index for index in indices if isinstance(index, int) and -len(axes) <= index < len(axes)]
        places = [axes[number] for number in numbers]
        known = bool(places) and len(places) == len(indices)
        return range(places[0], places[-1] + 1) if known and places == list(range(places[0], places[-1] + 1)) else None
    bounds = [facts.integers(value) for value in node.inputs[1:]]
    if len(bounds) < 2 or any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    numbers = [bound[0] for bound in bounds if bound is not None and isinstance(bound[0], int)]
    if len(numbers) < len(bounds) or numbers[3:] not in ([], [1]):
        return None
    part = axes[numbers[0] : numbers[1]]
    return part if len(part) else None


_MOST_NODES = 32
"""Limits the nodes that one search visits. A choice that bounds the cost."""


@dataclass(frozen=True)
class _Part:
    """Holds neighbouring elements of the vector: all elements of `value`, or numbers."""

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
        parts = _vector_parts(elements, list(_vectors_before(node)))
        if parts is None:
            return None
        kept = {part.value for part in parts if part.value is not None}
        is_node = len(parts) > 1 or not _stands_for(value, parts[0].value)
        if is_node >= freed(node, kept=kept):
            plain = node.op_type == "Concat" and kept.issuperset(_computed(node))
            return None if plain else NoMatch("the rewrite would need as many nodes as it removes")
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


def _vectors_before(node: ir.Node) -> Iterator[tuple[ir.Value, tuple[facts.Element, ...]]]:
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


def _vector_parts(
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
