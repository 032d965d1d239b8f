"""The table of operators whose operands' sizes are checked here."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from onnxsmith.model.graph import schema as schemas
from onnxsmith.operators.sizes import layout, normalisation, pointwise, products, quantised, recurrent, windows
from onnxsmith.operators.sizes.call import Call

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
    **dict.fromkeys(REDUCING, layout.reduce_axes),
    **dict.fromkeys(WITH_AXIS, layout.one_axis),
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
    "BatchNormalization": normalisation.batch,
    "InstanceNormalization": normalisation.channels,
    "GroupNormalization": normalisation.group,
    "LayerNormalization": normalisation.trailing,
    "RMSNormalization": normalisation.trailing,
    "Concat": layout.concat,
    "Reshape": layout.reshape,
    "Expand": layout.expand,
    "Transpose": layout.transpose,
    "Squeeze": layout.squeeze,
    "Unsqueeze": layout.unsqueeze,
    "Flatten": layout.flatten,
    "Split": layout.split,
    "Slice": layout.slices,
    "Gather": layout.gather,
    "GatherElements": layout.gather_elements,
    "ScatterElements": layout.scatter_elements,
    "ScatterND": layout.scatter_nd,
    "Tile": layout.tile,
    "Pad": layout.pad,
    "CumSum": layout.cumsum,
    "Einsum": products.einsum,
    "LSTM": recurrent.gates,
    "GRU": recurrent.gates,
    "RNN": recurrent.gates,
    "QuantizeLinear": quantised.scales,
    "DequantizeLinear": quantised.scales,
    "QLinearConv": quantised.conv,
}
"""By operator of ONNX's own domain. A rule raises for sizes that are numbers and contradict each other; names and
unknown sizes pass."""


def check(node: ir.Node, version: int, where: str) -> None:
    """Checks a new node.

    Raises:
        OnnxsmithError: `build/shape`.
    """
    rule = RULES.get(node.op_type) if node.domain == "" else None
    schema = schemas.find(node.op_type, "", version) if rule is not None else None
    if rule is not None and schema is not None:
        rule(Call(node, schema, where))
