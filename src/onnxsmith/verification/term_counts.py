"""Counts the terms that a node sums and the operations of a node, from the shapes in the file and the sizes of one
run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

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
