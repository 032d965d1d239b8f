"""Reshape and Flatten: axes that are joined or divided."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Links, static
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.operators.base import Operator, can_resize, integer
from onnxsmith.precision.pruning.reshape_axes import Run, channel_axis, pairs, runs


class Reshaping(Operator):
    """Axes are compared by their sizes (`regrouping`). A channel before is a block, or a part of a block, behind.

    A result shape that is computed becomes a constant where all of it is known; else only the elements of axes that
    become shorter are replaced."""

    ops = ("Flatten", "Reshape")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        before, after = facts.dims(x), facts.dims(y)
        if before is None or after is None or (node.op_type == "Reshape" and not _changeable(node)):
            return
        assert x is not None
        for run in runs(before, after):
            living = [axis for axis in run.before if links.is_live(x, axis)]
            if len(living) == 1:
                self._tie(links, x, y, living[0], run)

    def _tie(self, links: Links, x: ir.Value, y: ir.Value, axis: int, run: Run) -> None:
        if run.is_same and static(y, run.after[0]) is not None:
            links.tie(x, axis, y, run.after[0])
            return
        sizes = run.sizes(x), run.sizes(y, after=True)
        if None in sizes[0] or None in sizes[1]:
            return
        before, after = (tuple(size or 0 for size in one) for one in sizes)
        inside, chosen = run.before.index(axis), links.views.get((before, after))
        place = channel_axis(before, after, inside, chosen)
        wide = sum(size > 1 for size in after)
        if wide > 1 and before[inside] > 1:
            links.divided[before, after] = len(after)
        at, to = pairs(before, after, inside, place)
        links.tie(x, axis, y, run.after[place], at, to)

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        if node.op_type == "Flatten" or not (cuts.axes(node.inputs[0]) or cuts.axes(node.outputs[0])):
            return
        cut = cuts.axes(node.outputs[0])
        sizes = target(node)
        if sizes is None:
            cuts.resize(node, 1, {at: len(indices) for at, indices in cut.items()})
        else:
            cuts.replace(node, 1, [len(cut[at]) if at in cut and size > 0 else size for at, size in enumerate(sizes)])


def _changeable(node: ir.Node) -> bool:
    array = facts.constant(node.inputs[1])
    if array is not None:
        return not (integer(node, "allowzero", 0) and 0 in array)
    return can_resize(node, 1) and not (integer(node, "allowzero", 0) and 0 in (facts.dims(node.outputs[0]) or ()))


def target(node: ir.Node) -> list[int] | None:
    """The target of a Reshape as constant numbers; None if it has to be computed."""
    array = facts.constant(node.inputs[1])
    if array is not None:
        return [int(size) for size in array.ravel()]
    before, after = facts.dims(node.inputs[0]) or (), facts.dims(node.outputs[0]) or ()
    copies = not integer(node, "allowzero", 0)
    found = []
    for at, size in enumerate(after):
        if isinstance(size, int) and size > 0:
            found.append(size)
        elif copies and size is not None and at < len(before) and before[at] == size:
            found.append(0)
        else:
            return None
    return found
