"""Shape: the sizes of a tensor, from which others are computed."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Links, rank
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.operators.base import SELECTING, Operator, integer


class SizesOf(Operator):
    """A size that is known before a run is a constant here (`working`), so that readers of the others do not see
    channels. Where a reader takes the size of an axis that becomes shorter, it sees the size from before: operators
    that make tensors of such a size change their own operands."""

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
    """The axes whose sizes are in the result."""
    count = rank(node.inputs[0]) or 0
    begin, end, _ = slice(integer(node, "start", 0), integer(node, "end", count)).indices(count)
    return begin, end


def _reads(node: ir.Node, index: int, at: int) -> bool:
    """Whether a reader of a vector may take an element."""
    if node.op_type != "Gather" or node.domain or index != 0:
        return True
    taken = facts.constant(node.inputs[1])
    assert node.inputs[0] is not None
    size = None if node.inputs[0].shape is None else node.inputs[0].shape[0]
    return taken is None or not isinstance(size, int) or at in {int(one) % size for one in taken.ravel()}
