"""Follows channels through operators that compute from all elements along an axis."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Cuts, Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators.base import Operator, integer, operand


class Normalisation(Operator):
    """Normalisations with statistics of each channel.

    Scale, bias, mean and variance lose the channel. InstanceNormalization averages over the axes after the channel
    axis.
    """

    ops = ("BatchNormalization", "InstanceNormalization")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        stored = [value for value in node.inputs[1:] if value is not None]
        if len(node.outputs) > 1 or not all(is_weight(value) for value in stored):
            return
        for axis in links.live_axes(x):
            if axis > 1 and node.op_type == "InstanceNormalization":
                links.pin(x, axis, f"{node.op_type} averages over it")
                continue
            links.tie(x, axis, y, axis)
            for value in stored if axis == 1 else ():
                links.tie(y, 1, value, 0)


class GroupNormalisation(Operator):
    """GroupNormalization: statistics of groups of channels.

    Only whole groups are removed, because a group with fewer channels would have another mean. Scale and bias have an
    element for each channel; before opset 21, for each group.
    """

    ops = ("GroupNormalization",)

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        count, groups = static(x, 1), integer(node, "num_groups", 1)
        stored = [value for value in node.inputs[1:3] if value is not None]
        assert x is not None
        for axis in links.live_axes(x):
            if axis == 0:
                links.tie(x, 0, y, 0)
            elif axis > 1:
                links.pin(x, axis, f"{links.label} averages over it")
            elif count is not None and count % groups == 0 and all(is_weight(value) for value in stored):
                self._tie(links, x, y, count // groups, stored)

    def _tie(self, links: Links, x: ir.Value, y: ir.Value, each: int, stored: list[ir.Value]) -> None:
        count = static(x, 1) or 0
        first = np.arange(count) // each * each
        links.tie(x, 1, x, 1, None, first)
        links.tie(x, 1, y, 1)
        for value in stored:
            by_channel = static(value, 0) == count
            links.tie(y, 1, value, 0, None, np.arange(count) if by_channel else np.arange(count) // each)

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        kept, groups, count = cuts.of(node.inputs[0], 1), integer(node, "num_groups", 1), static(node.inputs[0], 1)
        if kept is not None and count is not None:
            node.attributes["num_groups"] = ir.AttrInt64("num_groups", len(kept) * groups // count)


class Reduction(Operator):
    """Reductions: channels pass along axes that are not reduced.

    Channels along a reduced axis stay.
    """

    ops = (
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
        "ReduceProd", "ReduceSum", "ReduceSumSquare",
    )  # fmt: skip

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        count = rank(x)
        axes = None if count is None else _axes(node, count)
        if axes is None:
            return
        assert x is not None
        keeps = bool(integer(node, "keepdims", 1))
        for axis in links.live_axes(x):
            if axis in axes:
                links.pin(x, axis, f"{links.label} reduces it")
            else:
                links.tie(x, axis, y, axis if keeps else axis - sum(one < axis for one in axes))


def _axes(node: ir.Node, count: int) -> set[int] | None:
    if "axes" in node.attributes:
        return {int(axis) % count for axis in node.attributes["axes"].as_ints()}
    value = operand(node, 1)
    array = facts.constant(value)
    if value is not None and array is None:
        return None
    given = [] if array is None else [int(axis) % count for axis in array.ravel()]
    nothing = not given and integer(node, "noop_with_empty_axes", 0)
    return set(given) if given or nothing else set(range(count))


_ALL_BEHIND = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
_SOFT = ("Softmax", "LogSoftmax", "Hardmax")
_FLATTENED_UNTIL = 13
"""Until this opset, softmax flattens all axes from `axis` on (ONNX Changelog.md)."""


class Mixing(Operator):
    """Operators that compute an element from others along an axis: channels along that axis stay.

    Channels stay along an axis over which the operator sums or sorts, and pass along other axes.
    """

    ops = (*_ALL_BEHIND, *_SOFT, "CumSum", "LRN", "LpNormalization")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        mixed = self._mixed(node, rank(x) or 0, facts.opset(node))
        for axis in links.live_axes(x):
            if axis in mixed:
                links.pin(x, axis, f"{links.label} computes each channel from all channels")
            elif len(node.outputs) == 1:
                links.tie(x, axis, y, axis)

    def _mixed(self, node: ir.Node, count: int, opset: int) -> set[int]:
        if node.op_type in ("LRN", "CumSum"):
            return set(range(1, count)) if node.op_type != "CumSum" else set(range(count))
        old = node.op_type in _SOFT and opset < _FLATTENED_UNTIL
        axis = integer(node, "axis", 1 if old else -1) % max(1, count)
        return set(range(axis, count)) if old or node.op_type in _ALL_BEHIND else {axis}
