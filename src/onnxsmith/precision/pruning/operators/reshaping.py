"""Reshape and Flatten: axes that are joined or divided."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.shapes import facts
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.links import Links, static
from onnxsmith.precision.pruning.operators.base import Operator, integer
from onnxsmith.precision.pruning.regrouping import Run, channel_axis, pairs, runs


class Reshaping(Operator):
    """Axes are compared by their sizes (`regrouping`). A channel before is a block, or a part of a block, behind.

    A result shape that is computed becomes a constant; so at most one axis may have a size that is not known, beside
    those that stay at their place."""

    ops = ("Flatten", "Reshape")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        before, after = facts.dims(x), facts.dims(y)
        if before is None or after is None or (node.op_type == "Reshape" and target(node) is None):
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
        sizes = target(node)
        assert sizes is not None
        cut = cuts.axes(node.outputs[0])
        cuts.replace(node, 1, [len(cut[at]) if at in cut and size > 0 else size for at, size in enumerate(sizes)])


def target(node: ir.Node) -> list[int] | None:
    """The target of a Reshape as constant numbers; None if it has to be computed."""
    x, y = node.inputs[0], node.outputs[0]
    array = facts.constant(node.inputs[1])
    if array is not None:
        return None if integer(node, "allowzero", 0) and 0 in array else [int(size) for size in array.ravel()]
    before, after = facts.dims(x) or (), facts.dims(y)
    if after is None:
        return None
    found = []
    for at, size in enumerate(after):
        if isinstance(size, int):
            found.append(size)
        else:
            stays = at < len(before) and size is not None and before[at] == size
            found.append(0 if stays else -1)
    if found.count(-1) > 1 or 0 in [size for size in after if isinstance(size, int)]:
        return None
    return None if integer(node, "allowzero", 0) and 0 in found else found
