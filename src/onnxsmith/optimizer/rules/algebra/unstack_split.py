"""Parts that are stacked along an extra axis and taken from it one by one are a `Split`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _split, _views
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


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
        stack, axis = node.inputs[0], _axis(node)
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
            return NoMatch("the sizes of the axis and of the one behind it are not known")
        target = _views.target(data, [*dims[:made], count * width, *dims[made + 2 :]])
        if target is None:
            return NoMatch("more than one dimension is not the data's at the same place", reshape)
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


def _axis(node: ir.Node) -> int | None:
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
        if _axis(reader) != axis or not _takes_one(reader, axis) or not isinstance(size, int):
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
