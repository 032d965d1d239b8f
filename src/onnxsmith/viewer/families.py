"""The families of operators, which the page colours."""

from __future__ import annotations

from functools import cache

_MEMBERS = {
    "product": "Conv ConvInteger ConvTranspose DeformConv Einsum Gemm MatMul MatMulInteger QLinearConv QLinearMatMul"
    " Attention MultiHeadAttention GroupQueryAttention FusedMatMul MatMulNBits FusedConv LSTM GRU RNN FusedGemm",
    "activation": "Celu Clip Elu Gelu FastGelu HardSigmoid HardSwish LeakyRelu LogSoftmax Mish PRelu Relu Selu Sigmoid"
    " Softmax Softplus Softsign Swish Tanh ThresholdedRelu Hardmax Shrink QuickGelu BiasGelu",
    "normalization": "BatchNormalization GroupNormalization InstanceNormalization LayerNormalization LpNormalization"
    " LRN MeanVarianceNormalization RMSNormalization SimplifiedLayerNormalization SkipLayerNormalization",
    "shape": "Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad Reshape Resize Scatter"
    " ScatterElements ScatterND Shape Size Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze Upsample Compress"
    " CenterCropPad Col2Im ReverseSequence Trilu GridSample AffineGrid RoiAlign TensorScatter RotaryEmbedding",
    "reduction": "ArgMax ArgMin AveragePool CumSum CumProd GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool"
    " ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"
    " ReduceSumSquare TopK NonMaxSuppression MaxRoiPool Unique",
    "quantizer": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "control": "If Loop Scan SequenceMap SequenceAt SequenceConstruct SequenceEmpty SequenceInsert SequenceErase"
    " SequenceLength SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement",
    "constant": "Constant ConstantOfShape EyeLike RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range"
    " Bernoulli Multinomial OneHot",
    "elementwise": "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor"
    " Cast CastLike Ceil Cos Cosh Div Dropout Equal Erf Exp Floor Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual"
    " Log Max Mean Min Mod Mul Neg Not Or Pow Reciprocal Round Sign Sin Sinh Sqrt Sub Sum Tan Where Xor",
}
_FAMILY = {op: family for family, names in _MEMBERS.items() for op in names.split()}
_PAGES = {"": "onnx__", "ai.onnx": "onnx__", "ai.onnx.ml": "onnx_aionnxml_"}


def family(op_type: str) -> str:
    """Returns the family of an operator, by its name in any domain; "other" if it has none."""
    return _FAMILY.get(op_type, "other")


@cache
def doc(op_type: str, domain: str) -> str:
    """Returns the address of the operator's page in ONNX's documentation; "" for operators of other domains."""
    page = _PAGES.get(domain)
    return f"https://onnx.ai/onnx/operators/{page}{op_type}.html" if page and op_type.isidentifier() else ""
