"""Lists the operators whose operands' sizes are checked here."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from onnxsmith.graph.operators.sizes import layer_sizes, movement_sizes, pointwise, products, windows
from onnxsmith.graph.operators.sizes.size_rule_call import Call
from onnxsmith.graph.structure import schema as schemas

BROADCASTING = (
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip
REDUCING = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
WITH_AXIS = ("ArgMax", "ArgMin", "Hardmax", "LogSoftmax", "Softmax", "TopK", "LpNormalization")

RULES: dict[str, Callable[[Call], None]] = {
    **dict.fromkeys(BROADCASTING, pointwise.broadcast),
    **dict.fromkeys(REDUCING, movement_sizes.reduce_axes),
    **dict.fromkeys(WITH_AXIS, movement_sizes.one_axis),
    "If": pointwise.condition,
    "Loop": pointwise.loop,
    "PRelu": pointwise.prelu,
    "Clip": pointwise.clip,
    "Range": pointwise.scalars,
    "Dropout": pointwise.dropout,
    "MatMul": products.matmul,
    "MatMulInteger": products.matmul,
    "Gemm": products.gemm,
    "Attention": products.attention,
    "Conv": windows.conv,
    "ConvInteger": windows.conv,
    "ConvTranspose": windows.conv_transpose,
    "MaxPool": windows.pool,
    "AveragePool": windows.pool,
    "LpPool": windows.pool,
    "GlobalAveragePool": windows.global_pool,
    "GlobalMaxPool": windows.global_pool,
    "DepthToSpace": windows.depth_to_space,
    "SpaceToDepth": windows.space_to_depth,
    "Resize": windows.resize,
    "GridSample": windows.grid_sample,
    "BatchNormalization": layer_sizes.batch,
    "InstanceNormalization": layer_sizes.channels,
    "GroupNormalization": layer_sizes.group,
    "LayerNormalization": layer_sizes.trailing,
    "RMSNormalization": layer_sizes.trailing,
    "Concat": movement_sizes.concat,
    "Reshape": movement_sizes.reshape,
    "Expand": movement_sizes.expand,
    "Transpose": movement_sizes.transpose,
    "Squeeze": movement_sizes.squeeze,
    "Unsqueeze": movement_sizes.unsqueeze,
    "Flatten": movement_sizes.flatten,
    "Split": movement_sizes.split,
    "Slice": movement_sizes.slices,
    "Gather": movement_sizes.gather,
    "GatherElements": movement_sizes.gather_elements,
    "ScatterElements": movement_sizes.scatter_elements,
    "ScatterND": movement_sizes.scatter_nd,
    "Tile": movement_sizes.tile,
    "Pad": movement_sizes.pad,
    "CumSum": movement_sizes.cumsum,
    "Einsum": products.einsum,
    "LSTM": layer_sizes.gates,
    "GRU": layer_sizes.gates,
    "RNN": layer_sizes.gates,
    "QuantizeLinear": layer_sizes.scales,
    "DequantizeLinear": layer_sizes.scales,
    "QLinearConv": layer_sizes.quantised_conv,
}
"""Maps operators of ONNX's own domain to size rules. A rule raises if two sizes are numbers that contradict each other;
it accepts names and unknown sizes."""


def check(node: ir.Node, version: int, where: str) -> None:
    """Checks the sizes of a new node's operands.

    Raises:
        OnnxsmithError: `build/shape`.
    """
    rule = RULES.get(node.op_type) if node.domain == "" else None
    schema = schemas.find(node.op_type, "", version) if rule is not None else None
    if rule is not None and schema is not None:
        rule(Call(node, schema, where))
