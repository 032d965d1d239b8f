"""Operators as opsets 1 to 6 had them: operands that another operand's memory could take, and sizes that had to be
told how they broadcast."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import drop_operands, numbers, operand, rank
from onnxsmith.graph.surgery.node_insertion import Inserter
from onnxsmith.graph.surgery.raisings.base import Raising


class ConsumedInputs(Raising):
    """Raises operators that could name the operands whose memory they take over.

    Drops the list, which changes no number.
    """

    operators: ClassVar[dict[str, int]] = dict.fromkeys(
        (
            "Abs", "Add", "BatchNormalization", "Ceil", "Div", "Dropout", "Elu", "Exp", "Floor", "HardSigmoid",
            "InstanceNormalization", "LeakyRelu", "Log", "Max", "Mean", "Min", "Mul", "Neg", "PRelu", "Reciprocal",
            "Relu", "Selu", "Sigmoid", "Sqrt", "Sub", "Sum", "Tanh",
        ),
        6,
    )  # fmt: skip

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        node.attributes.pop("consumed_inputs", None)
        return ""


class UnboundedClip(Raising):
    """Raises a Clip without a bound. Since opset 6 the bound is the largest float32 by default.

    Writes infinity.
    """

    operators: ClassVar[dict[str, int]] = {"Clip": 6}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        node.attributes.pop("consumed_inputs", None)
        for name, bound in (("min", -np.inf), ("max", np.inf)):
            if name not in node.attributes:
                node.attributes[name] = ir.AttrFloat32(name, bound)
        return ""


class ShapeOperand(Raising):
    """Raises a Reshape, whose shape was an attribute.

    Writes the shape as a constant operand.
    """

    operators: ClassVar[dict[str, int]] = {"Reshape": 5}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        attribute = node.attributes.get("shape")
        if attribute is None or attribute.is_ref():
            return "it has no shape" if attribute is None else "`shape` refers to an attribute of the function"
        shape = write.constant(list(attribute.as_ints()))
        for name in ("shape", "consumed_inputs"):
            node.attributes.pop(name, None)
        node.resize_inputs(2)
        node.replace_input_with(1, shape)
        return ""


class Broadcasting(Raising):
    """Raises operators of two operands that broadcast the second along the axis that an attribute names.

    Since opset 7 the last axes meet. Adds axes of size 1 behind those of the second operand.
    """

    operators: ClassVar[dict[str, int]] = dict.fromkeys(
        ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"), 7
    )

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        axis = node.attributes.get("axis")
        broadcasts = node.attributes.get_int("broadcast", 0)
        if broadcasts and axis is not None:
            reason = _aligned(node, write, axis.as_int())
            if reason:
                return reason
        for name in ("axis", "broadcast"):
            node.attributes.pop(name, None)
        return ""


def _aligned(node: ir.Node, write: Inserter, axis: int) -> str:
    """Adds axes of size 1 behind those of the second operand, so that its first axis meets `axis` of the first operand.
    Returns the reason if that is impossible."""
    data, other = operand(node, 0), operand(node, 1)
    ranks = rank(data), rank(other)
    if ranks[0] is None or ranks[1] is None:
        return "the axis depends on the number of dimensions of the operands, which is unknown"
    behind = ranks[0] - (axis + ranks[0] if axis < 0 else axis) - ranks[1]
    if behind < 0:
        return f"its second operand has more dimensions than the first has from axis {axis} on"
    if behind and other is not None:
        node.replace_input_with(1, write.op("Unsqueeze", other, axes=list(range(ranks[1], ranks[1] + behind))))
    return ""


class SlopeOfChannels(Raising):
    """Raises a PRelu with a slope for each channel. Since opset 7 the last axes of slope and input meet.

    Adds axes of size 1 behind the channels.
    """

    operators: ClassVar[dict[str, int]] = {"PRelu": 7}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        slope = operand(node, 1)
        if slope is None or slope.shape is None or len(slope.shape) != 1:
            return "" if rank(slope) == 0 else "its slope is not known to have one dimension"
        return "" if slope.shape[0] == 1 else _aligned(node, write, 1)


class TestMode(Raising):
    """Raises operators that an attribute told to infer instead of to train.

    Since opset 7 a BatchNormalization with one output infers, and one with more trains. A Dropout has no attribute for
    it.
    """

    operators: ClassVar[dict[str, int]] = {"BatchNormalization": 7, "Dropout": 7}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        infers = bool(node.attributes.get_int("is_test", 0))
        if node.op_type == "Dropout":
            if not infers:
                return "the operator drops elements at random (`is_test` is 0), which opset 7 cannot express"
        elif infers:
            if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
                return "its statistics are read, but the operator returns no statistics during inference"
            node.resize_outputs(1)
        node.attributes.pop("is_test", None)
        return ""


class SequenceOutput(Raising):
    """Raises recurrent layers that an attribute told whether their output of all steps is read.

    Drops the attribute: since opset 7 the output's name says so.
    """

    operators: ClassVar[dict[str, int]] = {"GRU": 7, "LSTM": 7, "RNN": 7}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        node.attributes.pop("output_sequence", None)
        return ""


class ForwardDirection(Raising):
    """Raises a GRU without a direction, whose default was misspelt.

    Writes the direction.
    """

    operators: ClassVar[dict[str, int]] = {"GRU": 3}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        if node.attributes.get_string("direction", "foward") == "foward":
            node.attributes["direction"] = ir.AttrString("direction", "forward")
        return ""


class GemmBroadcast(Raising):
    """Raises a Gemm that an attribute told to broadcast its third operand.

    Drops the attribute: since opset 7 the operand always broadcasts.
    """

    operators: ClassVar[dict[str, int]] = {"Gemm": 7}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        node.attributes.pop("broadcast", None)
        return ""


class NumberedType(Raising):
    """Raises a Cast, which named its dtype. Since opset 6 it has the dtype's number."""

    operators: ClassVar[dict[str, int]] = {"Cast": 6}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        name = node.attributes.get_string("to", "")
        if name.upper() not in ir.DataType.__members__:
            return f"`to` is not the name of a dtype: {name!r}"
        node.attributes["to"] = ir.AttrInt64("to", int(ir.DataType[name.upper()]))
        return ""


class WholeNorm(Raising):
    """Raises pools by a norm, whose order was a float. Since opset 2 it is an integer."""

    operators: ClassVar[dict[str, int]] = {"LpPool": 2, "GlobalLpPool": 2}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        order = node.attributes.get_float("p", 2.0)
        if order != int(order):
            return f"its norm of order {order:g} cannot be expressed since opset 2, which accepts only integers"
        node.attributes["p"] = ir.AttrInt64("p", int(order))
        return ""


class Pads(Raising):
    """Raises a Pad, whose attribute `paddings` is `pads` since opset 2."""

    operators: ClassVar[dict[str, int]] = {"Pad": 2}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        found = node.attributes.pop("paddings", None)
        if found is not None:
            node.attributes["pads"] = ir.AttrInt64s("pads", list(found.as_ints()))
        return ""


class SplitSizes(Raising):
    """Raises a Split whose sizes are an operand. Between opsets 2 and 12 they are an attribute."""

    operators: ClassVar[dict[str, int]] = {"Split": 2}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        if operand(node, 1) is not None:
            sizes = numbers(operand(node, 1))
            if sizes is None:
                return "its sizes are computed from an input"
            node.attributes["split"] = ir.AttrInt64s("split", sizes)
        drop_operands(node, 1)
        return ""


class ConcatAxis(Raising):
    """Raises a Concat without an axis, which is required since opset 4.

    Writes the default, axis 1.
    """

    operators: ClassVar[dict[str, int]] = {"Concat": 4}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        node.attributes["axis"] = ir.AttrInt64("axis", node.attributes.get_int("axis", 1))
        return ""


class TileRepeats(Raising):
    """Raises a Tile along one axis. Since opset 6 it has a number of repeats for every axis."""

    operators: ClassVar[dict[str, int]] = {"Tile": 6}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        times, axis = (_number(operand(node, index)) for index in (1, 2))
        dims = rank(operand(node, 0))
        if times is None or axis is None or dims is None:
            return "its number of repeats, its axis or the number of its input's dimensions is unknown"
        repeats: list[int] = [1] * dims
        repeats[axis] = times
        drop_operands(node, 1)
        node.resize_inputs(2)
        node.replace_input_with(1, write.constant(repeats))
        return ""


def _number(value: ir.Value | None) -> int | None:
    known: Any = facts.constant(value)
    return None if known is None or known.size != 1 else int(known.item())


class UpsampleScales(Raising):
    """Raises an Upsample of a picture. Since opset 7 it has a scale for every axis."""

    operators: ClassVar[dict[str, int]] = {"Upsample": 7}

    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        scales = [node.attributes.pop(name, None) for name in ("height_scale", "width_scale")]
        if any(scale is None for scale in scales):
            return "a scale is missing"
        node.attributes["scales"] = ir.AttrFloat32s("scales", [1.0, 1.0, *(one.as_float() for one in scales if one)])
        return ""
