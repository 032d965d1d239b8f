"""Operators whose meaning, modes or name changed."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import rank
from onnxsmith.graph.surgery.node_insertion import Inserter
from onnxsmith.graph.surgery.raisings.base import Raising


class SoftmaxAxis(Raising):
    """Raises a Softmax over an axis and all axes after it. Since opset 13 it runs along one axis.

    Keeps a Softmax along the last axis. Otherwise joins the axes in one, and restores the shape of the result.
    """

    operators: ClassVar[dict[str, int]] = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        data, axis = node.inputs[0], node.attributes.get_int("axis", 1)
        assert data is not None
        dims = rank(data)
        if axis == -1 or (dims is not None and axis == dims - 1):
            node.attributes["axis"] = ir.AttrInt64("axis", axis)
            return ""
        if dims is None or axis == dims:
            flat = write.op(node.op_type, write.op("Flatten", data, axis=axis), axis=-1)
            write.replace([write.op("Reshape", flat, write.op("Shape", data))])
            return ""
        axis %= dims
        there, back = _one_axis(data, axis, dims, write)
        joined = write.op(node.op_type, write.op("Reshape", data, there), axis=axis)
        write.replace([write.op("Reshape", joined, back)])
        return ""


def _one_axis(data: ir.Value, axis: int, dims: int, write: Inserter) -> tuple[ir.Value, ir.Value]:
    """Returns two shapes for Reshape: with the axes from `axis` on in one axis, and as before. The rank stays, with
    ones behind the joined axis. These ones are zeros if the tensor is empty: before opset 14, Reshape gets a size of 0
    only from the axis with the same number."""
    sizes = facts.dims(data)
    inner = () if sizes is None else sizes[axis:]
    known = [size for size in inner if isinstance(size, int) and size > 0]
    if known and len(known) == len(inner):
        ones = [1] * (len(known) - 1)
        return write.constant([0] * axis + [math.prod(known), *ones]), write.constant([0] * axis + known)
    whole = write.op("Shape", data)
    joined = write.op("ReduceProd", write.op("Slice", whole, write.constant([axis]), write.constant([dims])))
    behind = [write.op("Min", joined, write.constant([1]))] * (dims - axis - 1)
    outer = [write.constant([0] * axis)] if axis else []
    return write.op("Concat", *outer, joined, *behind, axis=0), whole


class NormalizedAxes(Raising):
    """Raises a MeanVarianceNormalization without axes.

    Writes the default axes: onnx's shape inference needs them since opset 13, because the operator has a body there.
    """

    operators: ClassVar[dict[str, int]] = {"MeanVarianceNormalization": 13}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        if "axes" not in node.attributes:
            node.attributes["axes"] = ir.AttrInt64s("axes", [0, 2, 3])
        return ""


class ScatterName(Raising):
    """Raises a Scatter, which is called ScatterElements since opset 11."""

    operators: ClassVar[dict[str, int]] = {"Scatter": 11}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        write.replace([write.op("ScatterElements", *node.inputs, **_values(node))])
        return ""


class RoiAlignCoordinates(Raising):
    """Raises a RoiAlign to the form with a choice of coordinates.

    Writes the choice that the operator made before opset 16, which is not the default.
    """

    operators: ClassVar[dict[str, int]] = {"RoiAlign": 16}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        name = "coordinate_transformation_mode"
        node.attributes[name] = ir.AttrString(name, "output_half_pixel")
        return ""


_LATER = {"bilinear": "linear", "bicubic": "cubic"}


class GridSampleModes(Raising):
    """Raises a GridSample, whose modes got other names."""

    operators: ClassVar[dict[str, int]] = {"GridSample": 20}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        mode = node.attributes.get_string("mode", "bilinear")
        node.attributes["mode"] = ir.AttrString("mode", _LATER.get(mode, mode))
        return ""


class ActivationStatistics(Raising):
    """Raises a BatchNormalization with statistics for each element of a sample, not for each channel.

    Flattens the samples: opset 9 has statistics of channels only, and suggests this (onnx, BatchNormalization-9).
    """

    operators: ClassVar[dict[str, int]] = {"BatchNormalization": 9}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        if node.attributes.get_int("spatial", 1):
            node.attributes.pop("spatial", None)
            return ""
        if len(node.outputs) > 1:
            return "`spatial` is 0, and the operator has the outputs of training"
        given = {name: value for name, value in _values(node).items() if name != "spatial"}
        rows = [write.op("Reshape", value, write.constant([-1])) for value in node.inputs[1:]]
        flat = write.op("BatchNormalization", write.op("Flatten", node.inputs[0], axis=1), *rows, **given)
        write.replace([write.op("Reshape", flat, write.op("Shape", node.inputs[0]))])
        return ""


class TrainingOutputs(Raising):
    """Raises a BatchNormalization with the outputs of training, which have another meaning since opset 14."""

    operators: ClassVar[dict[str, int]] = {"BatchNormalization": 14}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        if any(value.name for value in node.outputs[1:]):
            return "the operator has the outputs of training, which opset 14 computes in another way"
        return ""


class ScanBatch(Raising):
    """Refuses a Scan before opset 9, which ran over a batch of sequences of different lengths."""

    operators: ClassVar[dict[str, int]] = {"Scan": 9}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        return "the operator runs over a batch of sequences, but since opset 9 it runs over one sequence"


class GroupScales(Raising):
    """Raises a GroupNormalization with a scale and a bias for each group. Since opset 21 each channel has its own.

    Repeats each scale and bias for the channels of its group.
    """

    operators: ClassVar[dict[str, int]] = {"GroupNormalization": 21}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        groups = node.attributes.get_int("num_groups", 0)
        shape = facts.dims(node.inputs[0])
        channels = shape[1] if shape is not None and len(shape) > 1 else None
        count = channels // groups if isinstance(channels, int) and groups else None
        row: ir.Value | None = None
        for index in (1, 2):
            value = node.inputs[index]
            known = facts.constant(value)
            if known is not None and count is not None and value is not None and value.dtype is not None:
                node.replace_input_with(index, write.constant(np.repeat(known, count), value.dtype.numpy()))
                continue
            row = row or self._row(node, groups, count, write)
            column = write.op("Reshape", value, write.constant([-1, 1]))
            node.replace_input_with(index, write.op("Reshape", write.op("Expand", column, row), write.constant([-1])))
        return ""

    def _row(self, node: ir.Node, groups: int, count: int | None, write: Inserter) -> ir.Value:
        """Returns the shape of a row with an element for each channel of a group."""
        if count is not None:
            return write.constant([1, count])
        channels = write.op("Shape", node.inputs[0], start=1, end=2)
        return write.op("Concat", write.constant([1]), write.op("Div", channels, write.constant([groups])), axis=0)


def _values(node: ir.Node) -> dict[str, object]:
    return {name: attribute.value for name, attribute in node.attributes.items()}
