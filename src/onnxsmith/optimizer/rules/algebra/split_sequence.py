"""`SplitToSequence` with constant `SequenceAt` readers is a `Split`."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _split
from onnxsmith.optimizer.rules._patterns import integer
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class SplitSequence(Rule):
    """A SplitToSequence whose elements are read by SequenceAt at constant positions is a Split. torch exports x.split()
    like this.

    Refused:
    1. The sequence has another reader than SequenceAt, or is a graph output, or an element is taken at a position that
       is not constant.
    2. The size of the axis, or of a part, is not a known number.
    3. The parts drop the axis (`keepdims` is 0, and no sizes are given).
    4. One element is two graph outputs.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,2] y) <int64 size = {2}, int64 first = {0}, int64 second = {1}> {
            s = SplitToSequence <axis = 1> (x, size)
            a = SequenceAt(s, first)
            b = SequenceAt(s, second)
            y = Mul(a, b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,2] y) <int64[2] sizes = {2, 2}> {
            a, b = Split <axis = 1> (x, sizes)
            y = Mul(a, b)
        }
    """

    anchor = ("SplitToSequence",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        sequence = node.outputs[0]
        readers = list(sequence.consumers())
        if sequence.is_graph_output() or not readers:
            return NoMatch("the sequence is used as a whole")
        sizes = _sizes(node)
        if isinstance(sizes, NoMatch):
            return sizes
        axis, lengths = sizes
        places: dict[ir.Node, int] = {}
        for reader in readers:
            place = _place(reader, len(lengths)) if reader.graph is node.graph else None
            if place is None:
                return NoMatch("the sequence is used by others than SequenceAt at a constant place")
            places[reader] = place
        out = [place for reader, place in places.items() if reader.outputs[0].is_graph_output()]
        if len(set(out)) < len(out):
            return NoMatch("one element is two results of the graph")
        return Match(node, (node, *places), {"axis": axis, "sizes": lengths, "places": places})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        found, opset = match.found, facts.opset(match.node)
        parts = _split.split(tape, match.node.inputs[0], found["axis"], found["sizes"], opset)
        return {reader.outputs[0]: parts[place] for reader, place in found["places"].items()}


def _sizes(node: ir.Node) -> tuple[int, list[int]] | NoMatch:
    """Returns the axis, as written, and the sizes of the parts along it."""
    dims, axis = facts.dims(node.inputs[0]), integer(node, "axis", 0)
    if dims is None or axis is None or not -len(dims) <= axis < len(dims):
        return NoMatch("the axis is not known", node)
    whole = dims[axis]
    if not isinstance(whole, int) or whole < 1:
        return NoMatch("the size of the axis is not known", node)
    if len(node.inputs) < 2 or node.inputs[1] is None:
        if integer(node, "keepdims", 1) != 1:
            return NoMatch("the parts lose the axis", node)
        return axis, [1] * whole
    array = facts.constant(node.inputs[1])
    if array is None:
        return NoMatch("the sizes of the parts are not constants", node)
    if array.ndim:
        sizes = [int(size) for size in array]
    else:
        size = int(array)
        sizes = [min(size, whole - start) for start in range(0, whole, size)] if size > 0 else []
    if sum(sizes) != whole or min(sizes) < 1:
        return NoMatch("the parts are not the whole", node)
    return axis, sizes


def _place(reader: ir.Node, count: int) -> int | None:
    """Returns the position of the element that a SequenceAt takes."""
    if reader.op_type != "SequenceAt" or reader.domain:
        return None
    place = facts.constant(reader.inputs[1])
    if place is None or place.size != 1 or not -count <= int(place.item()) < count:
        return None
    return int(place.item()) % count
