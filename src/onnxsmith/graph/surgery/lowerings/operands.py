"""Operands, constants and dtypes, written as older opsets have them."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import Lowering, drop_operands, numbers, operand, rank
from onnxsmith.graph.surgery.node_insertion import Inserter

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    **{f"Reduce{name}": ("axes",) for name in (*_REDUCTIONS, "Sum")},
    "Squeeze": ("axes",), "Unsqueeze": ("axes",), "Split": ("split",), "Clip": ("min", "max"),
    "Pad": ("pads", "value"), "Slice": ("starts", "ends", "axes", "steps"), "TopK": ("k",), "DFT": ("", "axis"),
    "Dropout": ("ratio", "training_mode"), "Upsample": ("scales",),
}  # fmt: skip
"""Lists the attributes that held the operands after the first operand."""
_LISTS = {"axes", "split", "pads", "starts", "ends"}
_NEUTRAL = {"steps": 1, "training_mode": 0}
"""Maps operands without an earlier form to the value with which they have no effect."""


class AttributesForOperands(Lowering):
    """Lowers operands that were attributes before: axes of reductions, bounds of Clip, pads, slices, …

    Writes constant operands as attributes.
    """

    operators: ClassVar[dict[str, int]] = {
        **{f"Reduce{name}": 18 for name in _REDUCTIONS},
        "ReduceSum": 13, "Squeeze": 13, "Unsqueeze": 13, "Split": 13, "Clip": 11, "Pad": 11, "Slice": 10, "TopK": 10,
        "DFT": 20, "Dropout": 12, "Upsample": 9,
    }  # fmt: skip
    reads = ("noop_with_empty_axes",)

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if node.op_type == "Dropout" and any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
            return "its mask is used, but only since opset 12 is the mask defined outside training"
        found: dict[str, Any] = {}
        for index, name in enumerate(_ATTRIBUTES[node.op_type], start=1):
            value = operand(node, index)
            if value is None or not name:
                continue
            known = facts.constant(value)
            elements = numbers(value) if known is None else known.ravel().tolist()
            if elements is None:
                return f"`{name}` is computed, but was an attribute before opset {write.opset + 1}"
            if name in _NEUTRAL:
                if any(int(one) != _NEUTRAL[name] for one in elements):
                    return f"`{name}` is {elements[0]}, which opset {write.opset} cannot express"
            elif name in _LISTS:
                found[name] = [int(one) for one in elements]
            elif name == "scales":
                found[name] = [float(one) for one in elements]
            else:
                found[name] = elements[0]
        if "axes" in _ATTRIBUTES[node.op_type] and not found.get("axes"):
            if node.attributes.get_int("noop_with_empty_axes", 0):
                _without_reduction(node, write)
                return ""
            if node.op_type.startswith("Reduce"):
                found.pop("axes", None)
        reason = self._transform_axis(node, found)
        if reason:
            return reason
        if "axes" in _ATTRIBUTES[node.op_type]:
            node.attributes.pop("noop_with_empty_axes", None)
        for name, given in found.items():
            node.attributes[name] = ir.convenience.convert_attribute(name, given)
        drop_operands(node, 2 if node.op_type == "DFT" else 1)
        return ""

    def _transform_axis(self, node: ir.Node, found: dict[str, Any]) -> str:
        """Handles the axis of DFT. It is the last but one by default, and was axis 1; negative axes were not
        allowed."""
        if node.op_type != "DFT":
            return ""
        axis, dims = int(found.get("axis", -2)), rank(node.inputs[0])
        if axis < 0 and dims is None:
            return f"axis {axis} is counted from the end, but the number of dimensions is unknown"
        found["axis"] = axis if dims is None else axis % dims
        return ""


def _without_reduction(node: ir.Node, write: Inserter) -> None:
    """Replaces a reduction over no axes, of which only the steps on each element are left (onnx, the attribute
    `noop_with_empty_axes`): the absolute value of L1 and L2, the logarithm of LogSum, the square of SumSquare."""
    step = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log", "ReduceSumSquare": "Mul"}.get(node.op_type)
    write.replace([write.op(step or "Identity", *[node.inputs[0]] * (2 if step == "Mul" else 1))])


class ConstantsOfFloats(Lowering):
    """Lowers a Constant of integers, booleans or strings. Before opset 9 a Constant holds floats only.

    Writes an initializer.
    """

    operators: ClassVar[dict[str, int]] = {"Constant": 9}
    reads = ("value",)

    def lower(self, node: ir.Node, write: Inserter) -> str:
        attribute = node.attributes.get("value")
        if attribute is None or attribute.is_ref() or attribute.as_tensor().dtype.is_floating_point():
            return ""
        made = write.constant(attribute.as_tensor())
        write.replace([write.op("Identity", made) if node.outputs[0].is_graph_output() else made])
        return ""


class ConstantValues(Lowering):
    """Lowers a Constant with a number or a list instead of a tensor.

    Writes the number or the list as a tensor.
    """

    operators: ClassVar[dict[str, int]] = {"Constant": 12}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if not node.attributes:
            return "it has no value"
        name, attribute = next(iter(node.attributes.items()))
        if attribute.is_ref():
            return f"`{name}` refers to an attribute of the function"
        if not name.startswith("value_"):
            return ""
        kind = name.removeprefix("value_").removesuffix("s")
        if kind == "string":
            given = [attribute.value] if name == "value_string" else list(attribute.value)
            shape = [] if name == "value_string" else [len(given)]
            tensor: ir.TensorProtocol = ir.StringTensor([str(one).encode() for one in given], shape=ir.Shape(shape))
        else:
            tensor = ir.tensor(np.array(attribute.value, np.float32 if kind == "float" else np.int64))
        del node.attributes[name]
        node.attributes["value"] = ir.AttrTensor("value", tensor)
        return ""


class CastLike(Lowering):
    """Lowers a CastLike whose second operand has a known dtype.

    Replaces the CastLike by a Cast.
    """

    operators: ClassVar[dict[str, int]] = {"CastLike": 15}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        like = node.inputs[1]
        dtype = None if like is None else like.dtype
        if dtype is None:
            return "the dtype of its second operand is unknown"
        write.replace([write.op("Cast", node.inputs[0], to=int(dtype))])
        return ""


class GemmBias(Lowering):
    """Lowers a Gemm without a third operand, which was required before opset 11.

    Writes a zero for the operand that is left out.
    """

    operators: ClassVar[dict[str, int]] = {"Gemm": 11}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if operand(node, 2) is not None:
            return ""
        dtype = next((value.dtype for value in node.inputs if value is not None and value.dtype is not None), None)
        if dtype is None:
            return "the dtype of its operands is unknown, but the third operand needs this dtype"
        node.resize_inputs(3)
        zero = write.constant([0], dtype.numpy())
        node.replace_input_with(2, zero)
        return ""


class DropoutMask(Lowering):
    """Lowers a Dropout whose mask is not used. Before opset 10 the mask had the dtype of the input.

    Leaves the mask out.
    """

    operators: ClassVar[dict[str, int]] = {"Dropout": 10}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
            return "its mask is used, but the mask is boolean only since opset 10"
        node.resize_outputs(1)
        return ""


class BroadcastOperands(Lowering):
    """Lowers a Max, Min, Sum or Mean of tensors that are broadcast, which opset 8 introduced.

    Writes a Sum or a Mean as additions. Keeps operands of one shape.
    """

    operators: ClassVar[dict[str, int]] = {"Max": 8, "Min": 8, "Sum": 8, "Mean": 8}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        shapes = {facts.dims(value) for value in node.inputs}
        shape = next(iter(shapes), None)
        if len(node.inputs) == 1 or (len(shapes) == 1 and shape is not None and None not in shape):
            return ""
        if node.op_type in ("Max", "Min"):
            return "its operands may have different shapes, which opset 8 introduced"
        first = node.inputs[0]
        if node.op_type == "Mean" and (first is None or first.dtype is None):
            return "its operands may have different shapes, and their dtype is unknown"
        total = first
        for value in node.inputs[1:]:
            total = write.op("Add", total, value)
        if node.op_type == "Mean" and first is not None and first.dtype is not None:
            total = write.op("Div", total, write.constant(len(node.inputs), first.dtype.numpy()))
        assert total is not None
        write.replace([total])
        return ""


class ScatterName(Lowering):
    """Lowers a ScatterElements, which was called Scatter before opset 11."""

    operators: ClassVar[dict[str, int]] = {"ScatterElements": 11}
    reads = ("axis",)

    def lower(self, node: ir.Node, write: Inserter) -> str:
        write.replace([write.op("Scatter", *node.inputs, axis=node.attributes.get_int("axis", 0))])
        return ""


class ScanBatch(Lowering):
    """Refuses a Scan at opset 8, which ran over a batch of sequences."""

    operators: ClassVar[dict[str, int]] = {"Scan": 9}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        return "the operator runs over one sequence, but before opset 9 it ran over a batch of sequences"


_NARROW = {ir.DataType.INT4: np.int8, ir.DataType.UINT4: np.uint8}


class DequantizeBlocks(Lowering):
    """Lowers DequantizeLinear in blocks, or of 4-bit integers.

    Makes each block a row with a scale of its own, and restores the shape of the result. Widens 4-bit constants to 8
    bits.
    """

    operators: ClassVar[dict[str, int]] = {"DequantizeLinear": 21}
    reads = ("block_size", "axis")

    def lower(self, node: ir.Node, write: Inserter) -> str:
        q, scale, zero = operand(node, 0), operand(node, 1), operand(node, 2)
        block = node.attributes.get_int("block_size", 0)
        if q is None or scale is None:
            return ""
        narrow = [(place, value) for place, value in ((0, q), (2, zero)) if value is not None and _is_narrow(value)]
        if any(not facts.is_constant(value) for _, value in narrow):
            return "its integers have 4 bits and are not constant"
        shape = facts.dims(q)
        if block and (shape is None or not all(isinstance(size, int) for size in shape)):
            return "the operator dequantises in blocks, but the shape of its input is unknown"
        for place, value in narrow:
            node.replace_input_with(place, _widened(value, write))
        if block:
            sizes = [size for size in shape or () if isinstance(size, int)]
            _by_rows(node, sizes, block, write)
        return ""


def _by_rows(node: ir.Node, sizes: list[int], block: int, write: Inserter) -> None:
    axis = node.attributes.get_int("axis", 1) % len(sizes)
    order = [one for one in range(len(sizes)) if one != axis] + [axis]
    moved = [sizes[one] for one in order]

    def last(value: ir.Value, form: list[int]) -> ir.Value:
        if order != sorted(order):
            value = write.op("Transpose", value, perm=order)
        return write.op("Reshape", value, write.constant(form))

    q, scale, zero = node.inputs[0], node.inputs[1], operand(node, 2)
    assert q is not None
    assert scale is not None
    given = [last(q, [math.prod(sizes) // block, block]), last(scale, [-1])]
    if zero is not None:
        given.append(last(zero, [-1]))
    result = write.op("Reshape", write.op("DequantizeLinear", *given, axis=0), write.constant(moved))
    if order != sorted(order):
        result = write.op("Transpose", result, perm=[order.index(one) for one in range(len(order))])
    write.replace([result])


def _is_narrow(value: ir.Value) -> bool:
    return value.dtype in _NARROW


def _widened(value: ir.Value, write: Inserter) -> ir.Value:
    numbers = facts.constant(value)
    assert numbers is not None
    assert value.dtype is not None
    return write.constant(numbers.astype(_NARROW[value.dtype]), _NARROW[value.dtype])
