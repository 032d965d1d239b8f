"""Follows channels through operators that move, divide, join or repeat axes, or that return sizes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Cuts, Links, rank, static
from onnxsmith.precision.pruning.operators.base import SELECTING, Operator, can_resize, integer, operand
from onnxsmith.precision.pruning.reshape_axes import Run, channel_axis, pairs, runs


class Axes(Operator):
    """Transpose, Squeeze and Unsqueeze: the same axes at other places.

    Channels pass along each axis to its new place.
    """

    ops = ("Squeeze", "Transpose", "Unsqueeze")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        places = self._places(node, x, y)
        for axis in links.live_axes(x) if places is not None else ():
            assert places is not None
            if places.get(axis) is not None:
                links.tie(x, axis, y, places[axis])

    def _places(self, node: ir.Node, x: ir.Value, y: ir.Value) -> dict[int, int] | None:
        """Returns the place of each axis in the result; None if it is unknown."""
        count, after = rank(x), rank(y)
        if count is None or after is None:
            return None
        if node.op_type == "Transpose":
            order = [int(axis) for axis in node.attributes["perm"].as_ints()] if "perm" in node.attributes else None
            return {axis: at for at, axis in enumerate(order if order is not None else range(count - 1, -1, -1))}
        longer = max(count, after)
        named = self._named(node, longer)
        if named is None and node.op_type == "Squeeze" and len(node.inputs) < 2:
            named = {axis for axis in range(count) if static(x, axis) == 1}
        if named is None:
            return None
        others = [axis for axis in range(longer) if axis not in named]
        squeezed = node.op_type == "Squeeze"
        return {axis: at for at, axis in enumerate(others)} if squeezed else dict(enumerate(others))

    def _named(self, node: ir.Node, count: int) -> set[int] | None:
        if "axes" in node.attributes:
            return {int(axis) % count for axis in node.attributes["axes"].as_ints()}
        array = facts.constant(operand(node, 1))
        return None if array is None else {int(axis) % count for axis in array.ravel()}


class Reshaping(Operator):
    """Reshape and Flatten: axes that are joined or divided.

    Axes are compared by their sizes (`reshape_axes`). A channel of the input is a block, or a part of a block, of the
    result.

    A computed result shape becomes a constant if it is fully known. Else only the elements for axes that become shorter
    are replaced.
    """

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
    """Returns the target of a Reshape as constant numbers; None if it has to be computed."""
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


class Repeating(Operator):
    """Expand and Tile: axes that are repeated.

    Channels pass along an axis that keeps its size. The sizes in the operand of Expand become smaller.
    """

    ops = ("Expand", "Tile")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        shift = (rank(y) or 0) - (rank(x) or 0)
        if rank(y) is None or (node.op_type == "Expand" and not can_resize(node, 1)):
            return
        for axis in links.live_axes(x):
            if static(y, axis + shift) == static(x, axis):
                links.tie(x, axis, y, axis + shift)
            else:
                links.pin(x, axis, f"{links.label} repeats it")

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        if node.op_type != "Expand" or node.inputs[1] is None or node.inputs[1].shape is None:
            return
        count = node.inputs[1].shape[0]
        assert isinstance(count, int)
        shift = (rank(node.outputs[0]) or 0) - count
        cut = cuts.axes(node.outputs[0])
        cuts.resize(node, 1, {axis - shift: len(kept) for axis, kept in cut.items() if axis >= shift})


class Depth(Operator):
    """DepthToSpace and SpaceToDepth: channels become spatial positions, or the reverse.

    All channels that form one channel on the other side are removed together.
    """

    ops = ("DepthToSpace", "SpaceToDepth")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        few = y if node.op_type == "DepthToSpace" else x
        many, count, size = (x if few is y else y), static(few, 1), integer(node, "blocksize", 1) ** 2
        if not links.is_live(x, 1) or count is None:
            return
        mode = node.attributes.get("mode")
        by_channel = mode is not None and mode.as_string() == "CRD"
        which = np.repeat(np.arange(count), size) if by_channel else np.tile(np.arange(count), size)
        if few is y:
            links.tie(many, 1, few, 1, None, which)
        else:
            links.tie(few, 1, many, 1, which)


class Sizes(Operator):
    """Shape: the sizes of a tensor, from which other sizes are computed.

    Preparation (`working`) has turned sizes that are known before a run into constants, so that readers of other sizes
    do not depend on channels. A reader of the size of a shortened axis still gets the old size; operators that make
    tensors of such a size change their own operands.
    """

    ops = ("Shape",)

    def link(self, node: ir.Node, links: Links) -> None:
        x = node.inputs[0]
        assert x is not None
        if facts.opset(node) >= SELECTING:
            for axis in links.live_axes(x):
                links.pass_by(x, axis)

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        begin, end = _part(node)
        assert node.inputs[0] is not None
        shape = node.inputs[0].shape
        assert shape is not None
        before = {axis - begin: shape[axis] for axis in cuts.axes(node.inputs[0]) if begin <= axis < end}
        seen = {at: size for at, size in before.items() if isinstance(size, int)}
        if any(_reads(use.node, use.idx, at) for use in node.outputs[0].uses() for at in seen):
            cuts.restore(node, seen)


def _part(node: ir.Node) -> tuple[int, int]:
    """Returns the first axis whose size is in the result, and the end of these axes."""
    count = rank(node.inputs[0]) or 0
    begin, end, _ = slice(integer(node, "start", 0), integer(node, "end", count)).indices(count)
    return begin, end


def _reads(node: ir.Node, index: int, at: int) -> bool:
    """Whether a reader of a vector may read the element `at`."""
    if node.op_type != "Gather" or node.domain or index != 0:
        return True
    taken = facts.constant(node.inputs[1])
    assert node.inputs[0] is not None
    size = None if node.inputs[0].shape is None else node.inputs[0].shape[0]
    return taken is None or not isinstance(size, int) or at in {int(one) % size for one in taken.ravel()}
