"""Axes and shapes, written as older opsets have them."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import Lowering, drop_operands, numbers, operand, rank
from onnxsmith.graph.surgery.node_insertion import Inserter

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


class NegativeAxes(Lowering):
    """Lowers axes counted from the end, which opset 11 introduced for most operators.

    Counts the axes from the start.
    """

    operators: ClassVar[dict[str, int]] = {
        **{f"Reduce{name}": 11 for name in _REDUCTIONS},
        **dict.fromkeys(
            ("ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Gather", "Hardmax", "LogSoftmax", "OneHot",
             "Softmax", "Split", "Squeeze", "TopK", "Unsqueeze"), 11
        ),
    }  # fmt: skip
    reads = ("axes", "axis")

    def lower(self, node: ir.Node, write: Inserter) -> str:
        name = "axes" if "axes" in node.attributes else "axis"
        attribute = node.attributes.get(name)
        if attribute is None:
            return ""
        given = [int(one) for one in (attribute.value if name == "axes" else [attribute.value])]
        if min(given, default=0) >= 0:
            return ""
        dims = rank(node.inputs[0])
        if dims is None:
            return f"{name} {min(given)} is counted from the end, but the number of dimensions is unknown"
        dims += {"Unsqueeze": len(given), "OneHot": 1}.get(node.op_type, 0)
        counted = [axis % dims for axis in given]
        node.attributes[name] = ir.convenience.convert_attribute(name, counted if name == "axes" else counted[0])
        return ""


class SoftmaxAxis(Lowering):
    """Lowers a Softmax along one axis. Before opset 13 it ran over that axis and all axes after it.

    Moves the axis to the end, where both meanings are the same.
    """

    operators: ClassVar[dict[str, int]] = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13}
    reads = ("axis",)

    def lower(self, node: ir.Node, write: Inserter) -> str:
        axis, dims = node.attributes.get_int("axis", -1), rank(node.inputs[0])
        if dims is None:
            if axis != -1:
                return f"the axis is {axis}, but the number of dimensions is unknown"
            node.attributes["axis"] = ir.AttrInt64("axis", -1)
            return ""
        last = dims - 1
        if axis % dims == last:
            node.attributes["axis"] = ir.AttrInt64("axis", last)
            return ""
        order = list(range(dims))
        order[axis % dims], order[last] = last, axis % dims
        moved = write.op("Transpose", node.inputs[0], perm=order)
        write.replace([write.op("Transpose", write.op(node.op_type, moved, axis=last), perm=order)])
        return ""


class PadAxes(Lowering):
    """Lowers a Pad with a list of axes.

    Writes the pads of all axes: 0 for axes that are not in the list.
    """

    operators: ClassVar[dict[str, int]] = {"Pad": 18}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        axes = operand(node, 3)
        if axes is None:
            return ""
        chosen, dims, pads = numbers(axes), rank(node.inputs[0]), operand(node, 1)
        if chosen is None or dims is None:
            return "`axes` is computed" if chosen is None else "the number of dimensions is unknown"
        places = [axis % dims for axis in chosen]
        places += [dims + axis for axis in places]
        known = numbers(pads)
        if known is not None:
            full = [0] * (2 * dims)
            for place, pad in zip(places, known, strict=True):
                full[place] = pad
            node.replace_input_with(1, write.constant(full))
        else:
            zeros = write.constant([0] * (2 * dims))
            node.replace_input_with(1, write.op("ScatterElements", zeros, write.constant(places), pads))
        drop_operands(node, 3)
        return ""


_END = 2**31 - 1
"""Lies beyond the last axis, which means the end in a Slice."""


class ShapePart(Lowering):
    """Lowers a Shape of some of the axes.

    Writes the Shape of all axes, and a Slice after it.
    """

    operators: ClassVar[dict[str, int]] = {"Shape": 15}
    reads = ("start", "end")

    def lower(self, node: ir.Node, write: Inserter) -> str:
        start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", _END)
        for name in ("start", "end"):
            node.attributes.pop(name, None)
        if (start, end) == (0, _END):
            return ""
        whole = write.op("Shape", node.inputs[0])
        part = write.op("Slice", whole, write.constant([start]), write.constant([end]), write.constant([0]))
        write.replace([part])
        return ""


class SplitCount(Lowering):
    """Lowers a Split into a number of parts.

    Writes the sizes of the parts. All are equal, but the last may be smaller (onnx, Split since opset 18).
    """

    operators: ClassVar[dict[str, int]] = {"Split": 18}
    reads = ("num_outputs", "axis")

    def lower(self, node: ir.Node, write: Inserter) -> str:
        attribute = node.attributes.get("num_outputs")
        if attribute is None or operand(node, 1) is not None:
            return ""
        count, axis = len(node.outputs), node.attributes.get_int("axis", 0)
        data = node.inputs[0]
        dims = facts.dims(data)
        size = None if dims is None else dims[axis]
        if isinstance(size, int):
            part = -(-size // count)
            sizes = write.constant([part] * (count - 1) + [size - part * (count - 1)])
        else:
            length = write.op("Gather", write.op("Shape", data), write.constant([axis]), axis=0)
            more = write.op("Add", length, write.constant([count - 1]))
            part_size = write.op("Div", more, write.constant([count]))
            others = write.op("Mul", part_size, write.constant([count - 1]))
            sizes = write.op("Concat", *[part_size] * (count - 1), write.op("Sub", length, others), axis=0)
        del node.attributes["num_outputs"]
        node.resize_inputs(2)
        node.replace_input_with(1, sizes)
        return ""


class ReshapeZero(Lowering):
    """Lowers a Reshape with `allowzero`, in which 0 is a size.

    Removes `allowzero` if no size is 0, because it then has no effect.
    """

    operators: ClassVar[dict[str, int]] = {"Reshape": 14}
    reads = ("allowzero",)

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if not node.attributes.get_int("allowzero", 0):
            return ""
        sizes = numbers(node.inputs[1])
        if sizes is None or 0 in sizes:
            state = "has a 0" if sizes else "is computed and may contain a 0"
            return f"`allowzero` is 1, and the shape {state}, which before opset 14 stood for the input's size"
        del node.attributes["allowzero"]
        return ""
