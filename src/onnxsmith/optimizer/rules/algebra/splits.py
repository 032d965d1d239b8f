"""Joins `Split` in a row, moves equal operators before it, and makes it from other operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _split, _views
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.optimizer.rules._bundles import Region


class SplitBranches(Rule):
    """Equal nodes on neighbouring parts of a Split become one node before it: element-wise operators, Reshapes and
    Transposes that do not mix parts, and other operators along other axes. This also holds for graphs of such nodes,
    such as the rotation of query and key by their positions. The constants of the parts are concatenated. A part
    without a summand or a factor gets 0 or 1, which can turn -0.0 into 0.0.

    Fires if it saves nodes. Another Split is needed if a part has other readers.

    Refused:
    1. The concatenated constants would take over 1 kB more than before, because the constant of a part is broadcast
       along the axis.

    Stops where sizes along the axis are unknown, and after 32 nodes for each part. Nodes on two parts are no match if
    one depends on the result of the other.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,2] y) <int64[2] sizes = {2, 2}, float[2] c = {1, 2}, float[2] d = {3, 4}> {
            a, b = Split <axis = 1> (x, sizes)
            e = Add(a, c)
            f = Add(b, d)
            g = Relu(e)
            h = Relu(f)
            y = Mul(g, h)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,2] y) <float[4] c = {1, 2, 3, 4}, int64[2] sizes = {2, 2}> {
            e = Add(x, c)
            f = Relu(e)
            g, h = Split <axis = 1> (f, sizes)
            y = Mul(g, h)
        }
    """

    anchor = ("Split",)
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _split.parts(node)
        if found is None or len(node.outputs) < 2:
            return None
        from onnxsmith.optimizer.rules import _bundle_ops
        from onnxsmith.optimizer.rules._bundles import bundle

        axis, sizes = found
        for start, end in _runs(node):
            root = bundle(node.outputs[start:end], axis)
            if root is None or list(root.sizes) != sizes[start:end]:
                continue
            region = _bundle_ops.region(root)
            if region.saved + (end - start == len(sizes)) <= 0 or _bundle_ops.waits(region):
                continue
            before = region.before([node])
            if before is not None:
                which = {"region": region, "start": start, "sizes": sizes}
                return Match(node, (*region.nodes, node), which, before)
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        region: Region = match.found["region"]
        root, start, node = region.root, match.found["start"], match.node
        end, opset = start + len(root.values), facts.opset(match.node)
        if root.values == tuple(node.outputs):
            assert node.inputs[0] is not None
            return region.write(tape, node.inputs[0], opset)
        sizes = [*match.found["sizes"][:start], sum(root.sizes), *match.found["sizes"][end:]]
        parts = _split.split(tape, node.inputs[0], root.axis, sizes, opset)
        others = [*node.outputs[:start], *node.outputs[end:]]
        kept = dict(zip(others, [*parts[:start], *parts[start + 1 :]], strict=True))
        return {**kept, **region.write(tape, parts[start], opset)}


def _runs(node: ir.Node) -> Iterator[tuple[int, int]]:
    """Yields ranges of parts to examine together: all parts, then neighbours with the same readers, the largest range
    first."""
    yield 0, len(node.outputs)
    ways = [tuple(sorted(reader.op_type for reader in value.consumers())) for value in node.outputs]
    starts = [index for index, way in enumerate(ways) if index == 0 or way != ways[index - 1]]
    runs = zip(starts, [*starts[1:], len(ways)], strict=True)
    yield from sorted((run for run in runs if run[1] - run[0] > 1), key=lambda run: run[0] - run[1])


class SplitChain(Rule):
    """The parts of a part are parts of the whole: two Splits along one axis are one. Blocks that compute attention and
    a gated layer by one product split its result like this (FLUX.2).

    Refused:
    1. The part that is split has other readers, or is a graph output.

    Parts whose sizes are not known numbers are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,6] x) => (float[N,2] a, float[N,1] c, float[N,3] d)
        <int64[2] outer = {2, 4}, int64[2] inner = {1, 3}> {
            a, b = Split <axis = 1> (x, outer)
            c, d = Split <axis = 1> (b, inner)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,6] x) => (float[N,2] a, float[N,1] c, float[N,3] d) <int64[3] sizes = {2, 1, 3}> {
            a, c, d = Split <axis = 1> (x, sizes)
        }
    """

    anchor = ("Split",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        part = node.inputs[0]
        outer = maker(part, node, "Split")
        inside, outside = _split.parts(node), _split.parts(outer) if outer is not None else None
        if part is None or outer is None or inside is None or outside is None or inside[0] != outside[0]:
            return None
        if len(part.uses()) > 1 or part.is_graph_output():
            return NoMatch("the part is also used elsewhere", part)
        place = outer.outputs.index(part)
        sizes = [*outside[1][:place], *inside[1], *outside[1][place + 1 :]]
        return Match(node, (node, outer), {"axis": inside[0], "sizes": sizes, "place": place}, outer)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        inner, outer = match.nodes
        found, opset = match.found, facts.opset(inner)
        parts = _split.split(tape, outer.inputs[0], found["axis"], found["sizes"], opset)
        place = found["place"]
        old = [*outer.outputs[:place], *inner.outputs, *outer.outputs[place + 1 :]]
        return dict(zip(old, parts, strict=True))


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
        sizes = _sequence_sizes(node)
        if isinstance(sizes, NoMatch):
            return sizes
        axis, lengths = sizes
        places: dict[ir.Node, int] = {}
        for reader in readers:
            place = _sequence_place(reader, len(lengths)) if reader.graph is node.graph else None
            if place is None:
                return NoMatch("the sequence has a reader that is not a SequenceAt with a constant position")
            places[reader] = place
        out = [place for reader, place in places.items() if reader.outputs[0].is_graph_output()]
        if len(set(out)) < len(out):
            return NoMatch("one element is used as two graph outputs")
        return Match(node, (node, *places), {"axis": axis, "sizes": lengths, "places": places})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        found, opset = match.found, facts.opset(match.node)
        parts = _split.split(tape, match.node.inputs[0], found["axis"], found["sizes"], opset)
        return {reader.outputs[0]: parts[place] for reader, place in found["places"].items()}


def _sequence_sizes(node: ir.Node) -> tuple[int, list[int]] | NoMatch:
    """Returns the axis, as written, and the sizes of the parts along it."""
    dims, axis = facts.dims(node.inputs[0]), integer(node, "axis", 0)
    if dims is None or axis is None or not -len(dims) <= axis < len(dims):
        return NoMatch("the axis is not known", node)
    whole = dims[axis]
    if not isinstance(whole, int) or whole < 1:
        return NoMatch("the size of the axis is not known", node)
    if len(node.inputs) < 2 or node.inputs[1] is None:
        if integer(node, "keepdims", 1) != 1:
            return NoMatch("the parts have no split axis (keepdims is 0)", node)
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
        return NoMatch("the sizes of the parts do not add up to the size of the axis", node)
    return axis, sizes


def _sequence_place(reader: ir.Node, count: int) -> int | None:
    """Returns the position of the element that a SequenceAt takes."""
    if reader.op_type != "SequenceAt" or reader.domain:
        return None
    place = facts.constant(reader.inputs[1])
    if place is None or place.size != 1 or not -count <= int(place.item()) < count:
        return None
    return int(place.item()) % count


class UnstackSplit(Rule):
    """A Reshape makes an extra axis for several parts, such as query, key and value; a Transpose moves it to the front;
    and Gather, or Split and Squeeze, takes each part. This rule keeps the extra axis merged with the axis after it, and
    takes the parts by one Split along the merged axis.

    Refused:
    1. The stack has other readers, or one of its values is a graph output.
    2. The size of the extra axis or of the axis after it is unknown, or a Reshape would have to compute more than one
       other size.

    No match: an extra axis that is the last, because its parts are not contiguous; a single Gather.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,5,12] x) => (float[N,2,5,5] y)
        <int64[5] stacked = {0, 5, 2, 2, 3}, int64 first = {0}, int64 second = {1}> {
            a = Reshape(x, stacked)
            b = Transpose <perm = [2, 0, 3, 1, 4]> (a)
            q = Gather <axis = 0> (b, first)
            k = Gather <axis = 0> (b, second)
            t = Transpose <perm = [0, 1, 3, 2]> (k)
            y = MatMul(q, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,5,12] x) => (float[N,2,5,5] y) <int64[4] merged = {0, 5, 4, 3}, int64[2] sizes = {2, 2}> {
            a = Reshape(x, merged)
            b = Transpose <perm = [0, 2, 1, 3]> (a)
            q, k = Split <axis = 1> (b, sizes)
            t = Transpose <perm = [0, 1, 3, 2]> (k)
            y = MatMul(q, t)
        }
    """

    anchor = ("Gather", "Split")
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        stack, axis = node.inputs[0], _taken_axis(node)
        transpose = maker(stack, node, "Transpose")
        reshape = maker(transpose.inputs[0] if transpose is not None else stack, node, "Reshape")
        if stack is None or axis is None or reshape is None or not _takes_one(node, axis):
            return None
        dims, data = facts.dims(reshape.outputs[0]), facts.dims(reshape.inputs[0])
        perm = list(range(len(dims or ()))) if transpose is None else _views.perm(transpose)
        # the parts of a last axis are not contiguous
        if dims is None or perm is None or perm[axis] == len(dims) - 1:
            return None
        made = perm[axis]
        count, width = dims[made], dims[made + 1]
        if not isinstance(count, int) or not isinstance(width, int) or count < 2:
            return NoMatch("the sizes of the axis and of the axis after it are not known")
        target = _views.target(data, [*dims[:made], count * width, *dims[made + 2 :]])
        if target is None:
            return NoMatch("more than one dimension differs from the data's dimension at the same position", reshape)
        taken = _taken(stack, axis)
        middle = [value for one in (reshape, transpose) if one is not None for value in one.outputs]
        if taken is None or any(value.is_graph_output() for value in middle) or _branches(reshape, transpose):
            return NoMatch("the stack is used in other ways too", stack)
        if len(taken) < 2:
            return None
        turned = [old - (old > made) for old in perm if old != made]
        found = {"target": target, "perm": turned, "axis": turned.index(made), "sizes": [width] * count, "taken": taken}
        readers = [reader for value in taken.values() for reader in value[1]]
        nodes = (*readers, *([transpose] if transpose is not None else []), reshape)
        return Match(node, nodes, {**found, "source": reshape.inputs[0], "beside": reshape.inputs[1]}, reshape)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        found = match.found
        value = tape.op("Reshape", [found["source"], _views.integers(tape, found["target"], found["beside"])])
        if found["perm"] != sorted(found["perm"]):
            value = tape.op("Transpose", [value], {"perm": found["perm"]})
        parts = _split.split(tape, value, found["axis"], found["sizes"], facts.opset(match.node))
        return {old: parts[place] for old, (place, _) in found["taken"].items()}


def _taken_axis(node: ir.Node) -> int | None:
    """Returns the axis of a Gather or a Split, counted from the front."""
    dims, axis = facts.dims(node.inputs[0]), integer(node, "axis", 0)
    return None if dims is None or axis is None or not -len(dims) <= axis < len(dims) else axis % len(dims)


def _takes_one(node: ir.Node, axis: int) -> bool:
    if node.op_type == "Gather":
        index = facts.constant(node.inputs[1])
        return index is not None and index.ndim == 0
    parts = _split.parts(node)
    return parts is not None and parts[0] == axis and set(parts[1]) == {1}


def _taken(stack: ir.Value, axis: int) -> dict[ir.Value, tuple[int, list[ir.Node]]] | None:
    """Returns the values that are taken from the stack, each with its position and the nodes that take it, readers
    first. Returns None if the stack has other readers."""
    dims = facts.dims(stack)
    size = dims[axis] if dims is not None else None
    found: dict[ir.Value, tuple[int, list[ir.Node]]] = {}
    for reader in dict.fromkeys(stack.consumers()):
        if reader.domain or reader.op_type not in ("Gather", "Split") or reader.inputs[0] is not stack:
            return None
        if _taken_axis(reader) != axis or not _takes_one(reader, axis) or not isinstance(size, int):
            return None
        if reader.op_type == "Gather":
            place = int(np.asarray(facts.constant(reader.inputs[1])).item())
            if not -size <= place < size:
                return None
            found[reader.outputs[0]] = (place % size, [reader])
        elif not _squeezed(reader, axis, found):
            return None
    out = [place for value, (place, _) in found.items() if value.is_graph_output()]
    return found if len(set(out)) == len(out) else None


def _squeezed(split: ir.Node, axis: int, found: dict[ir.Value, tuple[int, list[ir.Node]]]) -> bool:
    """Notes the Squeezes of the parts of a Split; returns whether the parts have no other readers."""
    for place, part in enumerate(split.outputs):
        for reader in part.consumers():
            dims = facts.dims(part)
            if reader.op_type != "Squeeze" or reader.domain or reader.graph is not split.graph or dims is None:
                return False
            if _views.axes(reader, len(dims)) != (axis,):
                return False
            found[reader.outputs[0]] = (place, [reader, split])
        if part.is_graph_output():
            return False
    return True


def _branches(*nodes: ir.Node | None) -> bool:
    """Whether any node except the last has other readers than the next node."""
    every = [node for node in nodes if node is not None]
    return any(len(node.outputs[0].uses()) > 1 for node in every[:-1])
