"""A part of a shape is read by `Shape` with a start and an end."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import integer, maker, too_old
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule, is_sole_use


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
            return _joined(node)
        gather = maker(node.inputs[0], node, "Gather") if node.op_type in ("Unsqueeze", "Reshape") else node
        shape = maker(gather.inputs[0], node, "Shape") if gather is not None else None
        source = shape.inputs[0] if shape is not None else None
        rank = len(facts.dims(source) or ())
        if gather is None or shape is None or source is None or not rank:
            return None
        start, end = integer(shape, "start", 0), integer(shape, "end", rank)
        axes = range(0) if start is None or end is None else range(rank)[start:end]
        part = _part(gather, axes)
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
    """Neighbouring dimensions of a value, and the nodes that read them."""

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
        start, end = integer(shape, "start", 0), integer(shape, "end", rank)
        axes = range(0) if start is None or end is None else range(rank)[start:end]
        return cls(source, axes, rank, (shape,)) if len(axes) else None

    def then(self, other: _Sizes) -> _Sizes | None:
        """Joins two parts if `other` has the next dimensions of the same value."""
        if other.source is not self.source or other.axes.start != self.axes.stop:
            return None
        return _Sizes(self.source, range(self.axes.start, other.axes.stop), self.rank, (*self.nodes, *other.nodes))

    def write(self, tape: ir.tape.Tape) -> ir.Value:
        return tape.op("Shape", [self.source], _bounds(self.axes, self.rank))


def _joined(node: ir.Node) -> Match | None:
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


def _bounds(part: range, rank: int) -> dict[str, int]:
    """Returns the attributes of a Shape, without default values."""
    return {**({"start": part.start} if part.start else {}), **({"end": part.stop} if part.stop < rank else {})}


def _part(node: ir.Node, axes: range) -> range | None:
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
