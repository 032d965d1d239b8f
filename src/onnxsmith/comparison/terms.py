"""Counts the terms that a node sums, and its operations, from the static shapes in the file."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

UNKNOWN = 1024
"""Terms of a reduction whose length is not static. A choice."""
_TRIPS = 64
"""Iterations of loops and recurrent layers, whose number is not in the file. A choice."""
MOVING = {
    "Concat", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze",
}  # fmt: skip
"""Operators that pass their input on without computing, in another place or shape."""


def own(node: ir.Node, model: ir.Model) -> tuple[int, int]:
    """(terms summed, operations) of one node. A branch body counts once, a loop body `_TRIPS` times."""
    function = model.functions.get(node.op_identifier())
    bodies = [function] if function is not None else list(_bodies(node))
    if bodies:
        trips = _TRIPS if node.op_type in ("Loop", "Scan", "SequenceMap") else 1
        costs = [[own(inner, model) for inner in body] for body in bodies]
        inside = max(((sum(t for t, _ in body), sum(d for _, d in body)) for body in costs), default=(0, 0))
        return inside[0] * trips, inside[1] * trips
    terms = _TERMS.get(node.op_type)
    return (max(terms(node), 1), 1) if terms is not None else (1, 1)


def _bodies(node: ir.Node) -> list[ir.Graph]:
    attributes = node.attributes.values()
    return [a.as_graph() for a in attributes if a.type == ir.AttributeType.GRAPH and not a.is_ref()]


def _sizes(value: ir.Value | None) -> list[int] | None:
    shape = value.shape if value is not None else None
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        return None
    return [int(dim) for dim in shape]  # type: ignore[arg-type]


def input_of(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _convolution(node: ir.Node) -> int:
    weight = _sizes(input_of(node, 1))
    return math.prod(weight[1:]) if weight else UNKNOWN


def _transposed_convolution(node: ir.Node) -> int:
    weight = _sizes(input_of(node, 1))
    return math.prod([weight[0], *weight[2:]]) if weight else UNKNOWN


def _product(node: ir.Node) -> int:
    """The inner dimension: the last of the left operand, or the one before the last of the right."""
    left, right = input_of(node, 0), input_of(node, 1)
    transposed = node.op_type == "Gemm" and "transA" in node.attributes and node.attributes["transA"].as_int() == 1
    for value, axis in ((left, -2 if transposed else -1), (right, -1 if _is_transposed_b(node) else -2)):
        shape = value.shape if value is not None else None
        if shape is not None and len(shape) >= 2 and isinstance(shape[axis], int):
            return int(shape[axis])  # type: ignore[arg-type]
    return UNKNOWN


def _is_transposed_b(node: ir.Node) -> bool:
    return node.op_type == "Gemm" and "transB" in node.attributes and node.attributes["transB"].as_int() == 1


def _recurrent(node: ir.Node) -> int:
    weight, recurrence = _sizes(input_of(node, 1)), _sizes(input_of(node, 2))
    return ((weight[-1] + recurrence[-1]) if weight and recurrence else UNKNOWN) * _TRIPS


def _reduction(node: ir.Node) -> int:
    before, after = _sizes(input_of(node, 0)), _sizes(node.outputs[0])
    if before is None or after is None or 0 in after:
        return UNKNOWN
    return max(math.prod(before) // max(math.prod(after), 1), 1)


def _last_axis(node: ir.Node) -> int:
    shape = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
    size = shape[-1] if shape is not None and len(shape) else None
    return size if isinstance(size, int) else UNKNOWN


def _attention(_: ir.Node) -> int:
    """Three sums, one after the other: the products of queries and keys, the softmax, and the weighted values."""
    return 3 * UNKNOWN


def _unknown(_: ir.Node) -> int:
    return UNKNOWN


_TERMS: dict[str, Callable[[ir.Node], int]] = {
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
    **dict.fromkeys(
        ("InstanceNormalization", "GroupNormalization", "Einsum", "CumSum", "LRN", "Det", "DFT", "STFT",
         "MeanVarianceNormalization"), _unknown),
    **dict.fromkeys(("Attention", "MultiHeadAttention", "GroupQueryAttention"), _attention),
}  # fmt: skip
