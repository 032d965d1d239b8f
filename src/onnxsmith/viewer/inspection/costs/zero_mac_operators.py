"""Lists the operators that by convention have no multiply-accumulates."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.walk import op_name

_ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Celu Clip Cos
    Cosh Div Dropout Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu
    Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu RotaryEmbedding Round Selu
    Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor
    com.microsoft::BiasGelu com.microsoft::FastGelu com.microsoft::Gelu com.microsoft::QuickGelu
    com.microsoft::RotaryEmbedding com.microsoft::QLinearAdd com.microsoft::QLinearMul com.microsoft::QLinearLeakyRelu
    com.microsoft::QLinearSigmoid
"""
_OVER_AXES = """
    ArgMax ArgMin AveragePool BatchNormalization CumProd CumSum GlobalAveragePool GlobalLpPool GlobalMaxPool
    GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax LpNormalization LpPool MaxPool
    MeanVarianceNormalization RMSNormalization ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
    ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax TopK
    com.microsoft::QLinearAveragePool com.microsoft::QLinearGlobalAveragePool com.microsoft::QLinearSoftmax
    com.microsoft::SkipLayerNormalization com.microsoft::SkipSimplifiedLayerNormalization
    com.microsoft::EmbedLayerNormalization SimplifiedLayerNormalization
"""
_MOVES = """
    BitCast Cast CastLike CenterCropPad Compress Concat ConcatFromSequence Constant ConstantOfShape DepthToSpace
    DequantizeLinear DynamicQuantizeLinear Expand EyeLike Flatten Gather GatherElements GatherND Identity MaxUnpool
    NonZero OneHot Optional OptionalGetElement OptionalHasElement Pad QuantizeLinear Range Reshape ReverseSequence
    Scatter ScatterElements ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
    SequenceLength Shape Size Slice SpaceToDepth Split SplitToSequence Squeeze TensorScatter Tile Transpose Trilu Unique
    Unsqueeze com.microsoft::QuantizeLinear com.microsoft::DequantizeLinear com.microsoft::QLinearConcat
"""
_DRAWS = """
    Bernoulli BlackmanWindow HammingWindow HannWindow Multinomial RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike
"""
_WITHOUT = frozenset(f"{_ELEMENTWISE}{_OVER_AXES}{_MOVES}{_DRAWS}".split())


def without_products(node: ir.Node) -> bool:
    """Whether the operator counts as 0 multiply-accumulates: it works element by element, reduces, normalises or pools
    along axes, moves data, or draws numbers. This is the convention of torch.utils.flop_counter, which counts only
    matrix products, convolutions and attention. For a node with a body, the operators in the body decide.

    Operators that interpolate (Resize, GridSample, RoiAlign) do not count as 0; the report names them as not counted.
    """
    return op_name(node) in _WITHOUT or walk.has_subgraphs(node)
