"""Counts what rounding grows with: summed terms, operations, lengths of Fourier transforms, steps of quantisers.

ONNX Runtime transforms a length N that is no power of 2 by the algorithm of Bluestein (onnxruntime pull request 15522).
The algorithm multiplies by exp(iπk²/N) for k below N. The angles reach πN and are rounded in float32, by half a unit
roundoff of πN. In measurements of lengths from 3 to 2000, the error was 0.55 to 0.8 times u·π·N in root mean square,
relative to scale. This is about 2·u·N. For a power of 2 the error is a few u at any length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes.dims import evaluate
from onnxsmith.graph.structure import walk

UNKNOWN = 1024
"""Assumes this number of terms for a reduction whose length is not static. A choice."""
_TRIPS = 64
"""Assumes this number of iterations for loops and recurrent layers if the number is not in the file. A choice."""
MOVING = {
    "Concat", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze",
}  # fmt: skip
"""Lists the operators that only move or reshape their input."""


Sizes = Mapping[str, int]
"""Maps symbolic dimensions to their known sizes."""


def own(node: ir.Node, model: ir.Model, sizes: Sizes | None = None) -> tuple[int, int]:
    """Returns (terms summed, operations) of one node, in a run with these `sizes`. A branch body counts once, a loop
    body `_TRIPS` times."""
    sizes = sizes or {}
    function = model.functions.get(node.op_identifier())
    bodies = [function] if function is not None else list(walk.subgraphs(node))
    if bodies:
        trips = _TRIPS if node.op_type in ("Loop", "Scan", "SequenceMap") else 1
        costs = [[own(inner, model, sizes) for inner in body] for body in bodies]
        inside = max(((sum(t for t, _ in body), sum(d for _, d in body)) for body in costs), default=(0, 0))
        return inside[0] * trips, inside[1] * trips
    terms = _TERMS.get(node.op_type)
    return (max(terms(node, sizes), 1), 1) if terms is not None else (1, 1)


def _sizes(value: ir.Value | None, known: Sizes) -> list[int] | None:
    """Returns the shape if every dimension is known; else None."""
    shape = value.shape if value is not None else None
    found = [_size(dim, known) for dim in shape] if shape is not None else [None]
    return None if None in found else [size for size in found if size is not None]


def _size(dim: int | ir.SymbolicDim, known: Sizes) -> int | None:
    return dim if isinstance(dim, int) else evaluate(dim.value, known)


def input_of(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _convolution(node: ir.Node, sizes: Sizes) -> int:
    weight = _sizes(input_of(node, 1), sizes)
    return math.prod(weight[1:]) if weight else UNKNOWN


def _transposed_convolution(node: ir.Node, sizes: Sizes) -> int:
    weight = _sizes(input_of(node, 1), sizes)
    return math.prod([weight[0], *weight[2:]]) if weight else UNKNOWN


def _product(node: ir.Node, sizes: Sizes) -> int:
    """Returns the inner dimension: the last dimension of the left operand, or the second last of the right operand."""
    left, right = input_of(node, 0), input_of(node, 1)
    transposed = node.op_type == "Gemm" and "transA" in node.attributes and node.attributes["transA"].as_int() == 1
    for value, axis in ((left, -2 if transposed else -1), (right, -1 if _is_transposed_b(node) else -2)):
        shape = value.shape if value is not None else None
        size = _size(shape[axis], sizes) if shape is not None and len(shape) >= 2 else None
        if size is not None:
            return size
    return UNKNOWN


def _is_transposed_b(node: ir.Node) -> bool:
    return node.op_type == "Gemm" and "transB" in node.attributes and node.attributes["transB"].as_int() == 1


def _recurrent(node: ir.Node, sizes: Sizes) -> int:
    weight, recurrence = _sizes(input_of(node, 1), sizes), _sizes(input_of(node, 2), sizes)
    return ((weight[-1] + recurrence[-1]) if weight and recurrence else UNKNOWN) * _TRIPS


def _reduction(node: ir.Node, sizes: Sizes) -> int:
    before, after = _sizes(input_of(node, 0), sizes), _sizes(node.outputs[0], sizes)
    if before is None or after is None or 0 in after:
        return UNKNOWN
    return max(math.prod(before) // max(math.prod(after), 1), 1)


def _last_axis(node: ir.Node, sizes: Sizes) -> int:
    shape = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
    size = _size(shape[-1], sizes) if shape is not None and len(shape) else None
    return size if size is not None else UNKNOWN


def _instance(node: ir.Node, sizes: Sizes) -> int:
    """Counts the elements of one channel, over which mean and variance are computed; at least `UNKNOWN`."""
    return max(_count(node, 2, sizes), UNKNOWN)


def _group(node: ir.Node, sizes: Sizes) -> int:
    """Counts the elements of the channels of one group, over which mean and variance are computed."""
    return max(_count(node, 1, sizes) // max(node.attributes.get_int("num_groups", 1), 1), UNKNOWN)


def _count(node: ir.Node, first: int, sizes: Sizes) -> int:
    """Counts the elements of the first operand along its axes from `first` on; 0 if the number is unknown."""
    read = input_of(node, 0)
    if read is None or read.shape is None:
        return 0
    found = [_size(dim, sizes) for dim in list(read.shape)[first:]]
    return math.prod(size or 0 for size in found)


def _attention(_: ir.Node, __: Sizes) -> int:
    """Counts three sums in sequence: the products of queries and keys, the softmax, and the weighted values."""
    return 3 * UNKNOWN


def _unknown(_: ir.Node, __: Sizes) -> int:
    return UNKNOWN


_TERMS: dict[str, Callable[[ir.Node, Sizes], int]] = {
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv", "DeformConv"), _convolution),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul", "FusedMatMul"), _product),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(
        ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
         "ReduceProd", "GlobalAveragePool", "AveragePool"), _reduction),
    **dict.fromkeys(
        ("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization",
         "SkipLayerNormalization", "LpNormalization"), _last_axis),
    "InstanceNormalization": _instance,
    "GroupNormalization": _group,
    **dict.fromkeys(
        ("Einsum", "CumSum", "LRN", "Det", "DFT", "STFT",
         "MeanVarianceNormalization"), _unknown),
    **dict.fromkeys(("Attention", "MultiHeadAttention", "GroupQueryAttention"), _attention),
}  # fmt: skip


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


_AXIS, _LENGTH = 2, 1
"""Numbers the operands of DFT."""
_FRAME = 3
"""Numbers the operand of STFT that holds the length."""


def fourier_length(node: ir.Node, sizes: Mapping[str, int] | None) -> tuple[int, bool]:
    """Returns the length N of a DFT or STFT whose rounding is 2·u·N, and whether the length is unknown. Returns (0,
    False) for other nodes and for a power of 2. `sizes` are the known sizes of symbolic dimensions."""
    if node.domain or node.op_type not in ("DFT", "STFT"):
        return 0, False
    found = _number(node, _FRAME if node.op_type == "STFT" else _LENGTH)
    if found is None:
        found = _frame(node) if node.op_type == "STFT" else _signal(node, sizes or {})
    if found is None:
        return 0, True
    return (0 if found & (found - 1) == 0 else found), False


def _number(node: ir.Node, index: int) -> int | None:
    value = constant(node, index)
    return None if value is None or value.size != 1 else int(np.ravel(value)[0])


def _given(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _frame(node: ir.Node) -> int | None:
    """Returns the length of the window of an STFT whose length operand is missing."""
    window = _given(node, 2)
    size = window.shape[0] if window is not None and window.shape is not None and len(window.shape) == 1 else None
    return size if isinstance(size, int) else None


def _signal(node: ir.Node, sizes: Mapping[str, int]) -> int | None:
    """Returns the size of the axis that a DFT without a length transforms."""
    read = _given(node, 0)
    if _given(node, _LENGTH) is not None or read is None or read.shape is None:
        return None
    axis = node.attributes.get_int("axis", 1) if "axis" in node.attributes else _number(node, _AXIS)
    if axis is None:
        axis = -2 if _given(node, _AXIS) is None else None
    if axis is None or not -len(read.shape) <= axis < len(read.shape):
        return None
    size = read.shape[axis]
    return size if isinstance(size, int) else evaluate(size.value, sizes)
