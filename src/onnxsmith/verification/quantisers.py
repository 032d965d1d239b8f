"""Computes the error of quantisers relative to the values, from their steps and the scale of the values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.verification.term_counts import MOVING, input_of

_WIDTH = 8.0
"""Assumes the range of a quantiser, in multiples of the scale of its values, if the values are unknown. A choice: ±4
times the root mean square."""
INTEGER_PRODUCTS = {
    "ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat",
    "MatMulNBits", "QGemm", "QLinearAdd", "QLinearConv", "QLinearMatMul", "QLinearMul",
}  # fmt: skip
"""Lists the operators that multiply or add quantised integers and quantise their result."""


def own_noise(node: ir.Node, scales: Mapping[str, float]) -> float:
    """Returns the quantisation error of a node, in root mean square relative to its values. `scales` are the known root
    mean squares of values, by name."""
    if node.op_type in INTEGER_PRODUCTS:
        return math.sqrt(3) * noise_of_bits(8)  # three quantised tensors at most: two operands and the result
    if node.op_type == "DynamicQuantizeLinear":
        return noise_of_bits(8)
    if node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
        return 0.0
    step = constant(node, 1)
    if node.op_type == "DequantizeLinear":  # for activations, the QuantizeLinear before it was counted already
        weight = _stored_weight(node)
        return _noise_of_weight(node, weight, step) if weight is not None else 0.0
    scale = scales.get(node.inputs[0].name or "") if node.inputs[0] is not None else None
    if step is None or not scale:
        dtype = node.outputs[0].dtype
        return noise_of_bits(round(8 * dtype.itemsize) if dtype is not None else 8)
    widest = float(np.max(np.abs(step)))
    return widest / scale / math.sqrt(12)


def _stored_weight(node: ir.Node) -> np.ndarray[Any, Any] | None:
    """Returns the stored integers if they are a weight or rows gathered from a weight; else None."""
    weight, maker = constant(node, 0), node.inputs[0].producer() if node.inputs[0] is not None else None
    while weight is None and maker is not None and maker.op_type in MOVING and not maker.domain:
        weight, value = constant(maker, 0), input_of(maker, 0)
        maker = value.producer() if value is not None else None
    return weight


def noise_of_bits(bits: int) -> float:
    """Returns the error of a quantiser with this number of bits, in root mean square relative to its values."""
    return _WIDTH / (2.0**bits - 1) / math.sqrt(12)


def _noise_of_weight(node: ir.Node, weight: np.ndarray[Any, Any], step: np.ndarray[Any, Any] | None) -> float:
    """Returns the error of a stored weight. One level of its integers is one step, so the scale of the integers is
    enough."""
    zero = constant(node, 2)
    offset = float(np.mean(zero.astype(np.float64))) if zero is not None and zero.size else 0.0
    scale = float(np.sqrt(np.mean((weight.astype(np.float64) - offset) ** 2))) if weight.size > 1 else 0.0
    return 1 / scale / math.sqrt(12) if scale and step is not None else 0.0


def is_constant(value: ir.Value) -> bool:
    """Whether the value does not depend on an input: a constant, or a dequantised constant."""
    maker = value.producer()
    if maker is None:
        return value.const_value is not None
    return maker.op_type == "Constant" or (maker.op_type == "DequantizeLinear" and constant(maker, 0) is not None)


def constant(node: ir.Node, place: int) -> np.ndarray[Any, Any] | None:
    """Returns the values of the operand at `place` if it is a constant; else None."""
    value = input_of(node, place)
    if value is None:
        return None
    maker = value.producer()
    if maker is not None and maker.op_type == "Constant" and "value" in maker.attributes:
        return maker.attributes["value"].as_tensor().numpy()
    return value.const_value.numpy() if value.const_value is not None and not value.is_graph_input() else None
