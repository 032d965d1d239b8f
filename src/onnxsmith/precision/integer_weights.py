"""Recognises models that are quantised already: by their operators, and by weights that are stored as integers."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.structure import walk
from onnxsmith.precision.weight_storage import LEAST, MOVING

QUANTISERS = {
    "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger",
    "MatMulInteger", "MatMulNBits", "QAttention", "QGemm", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM",
    "MatMulBnb4", "GatherBlockQuantized", "MatMulIntegerToFloat", "QMoE", "QOrderedMatMul", "QOrderedAttention",
    "QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax",
    "QLinearGlobalAveragePool", "QLinearAveragePool", "MatMulFpQ4", "MatMulBnB4", "QEmbedLayerNormalization",
}  # fmt: skip
"""Operators that only quantised models have (ONNX Operators.md, onnxruntime ContribOperators.md)."""
_NARROW = {
    ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT4, ir.DataType.UINT4, ir.DataType.INT2, ir.DataType.UINT2,
    ir.DataType.INT16, ir.DataType.UINT16, ir.DataType.FLOAT8E4M3FN, ir.DataType.FLOAT8E5M2,
}  # fmt: skip
"""Dtypes in which weights are stored to be multiplied by a scale."""
_PASSING = {"Cast", "Sub", "Add", "BitwiseAnd", "BitShift", "ReduceSum", "ReduceMean"}
_READING = {"Mul", "Div", "MatMul", "Gemm", "Conv", "ConvTranspose"}


def quantisers(model: ir.Model) -> dict[str, int]:
    """Counts each quantising operator in the model."""
    counts = walk.histogram(model)
    return {name: count for name, count in counts.items() if name.rpartition("::")[2] in QUANTISERS}


def integer_weights(model: ir.Model) -> Iterator[ir.Value]:
    """Yields the weights that are stored in 8 bits or fewer, or in 16 as integers, and that a Cast turns into floats
    which are multiplied."""
    for graph in walk.graphs(model):
        constants = [node.outputs[0] for node in graph if node.op_type == "Constant"]
        for value in (*graph.initializers.values(), *constants):
            tensor = const_tensor(value)
            if tensor is not None and tensor.dtype in _NARROW and tensor.size >= LEAST and _is_multiplied(value):
                yield value


def _is_multiplied(weight: ir.Value) -> bool:
    """Whether nodes cast the weight, or moved elements of it, to floats and multiply them, by a scale or by inputs."""
    left, seen = [(weight, False)], set()
    while left:
        value, is_cast = left.pop()
        for use in value.uses():
            node = use.node
            if node.domain or node in seen:
                continue
            seen.add(node)
            if node.op_type in _READING and is_cast:
                return True
            if node.op_type in _PASSING or node.op_type in MOVING:
                is_float = is_cast or (node.op_type == "Cast" and _floats(node))
                left += [(output, is_float) for output in node.outputs]
    return False


def _floats(node: ir.Node) -> bool:
    return ir.DataType(node.attributes.get_int("to", 0)).is_floating_point()


def wide_share(model: ir.Model) -> float:
    """Returns the share of the bytes of all tensors that float32 and float64 tensors take."""
    tensors = {id(one): one for one in walk.tensors(model)}.values()
    whole = sum(one.nbytes for one in tensors)
    wide = sum(one.nbytes for one in tensors if one.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE))
    return wide / whole if whole else 0.0
