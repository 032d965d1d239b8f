"""Folds factors and summands for each channel into the weights and the bias of a convolution."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import AfterLinear, BeforeLinear


class AddConv(BeforeLinear):
    """Conv(x + c) is Conv(x) with the bias b plus the sum of W·c for each output channel; c is one number or one number
    for each channel of x. Conv(x - c) is Conv(x + -c). The same holds for Gemm with c along the last axis, and for a
    MatMul of two matrices, which becomes a Gemm.

    This rule leaves a summand that a linear operator before it can take, and the last summand of a written-out
    normalisation.

    The bias is computed in float64 and stored in the weights' dtype.

    Refused:
    1. The sum with c has other readers, or is a graph output.
    2. The convolution pads: it pads zeros after c is added, so the border would change.
    3. c varies along other axes than the channels, raises the rank, or x is not provably at least as wide as c.
    4. The old bias is not a constant, or the new bias overflows.
    5. A Gemm transposes its data.
    6. The MatMul is of higher rank, so that a new Add would replace the old Add.

    Weights that are not constants are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,1,4,4] y) <float[1,2,1,1] w = {2, 3}, float[2,1,1] c = {0.5, -1}> {
            a = Add(x, c)
            y = Conv(a, w)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,1,4,4] y) <float[1,2,1,1] w = {2, 3}, float[1] b = {-2}> {
            y = Conv(x, w, b)
        }
    """

    anchor = ("Conv", "Gemm", "MatMul")
    steps_by = ("Add", "Sub")


class MulConv(BeforeLinear):
    """Conv(x * c) is Conv(x) with W·c along its input channels, if c is one number, or one number for each channel of
    x. Padding may stay, because zeros stay zeros. The same holds for ConvTranspose, and for Gemm and MatMul with c
    along the last axis. Div by c and Neg are factors, too.

    This rule leaves a factor that a linear operator before it can take, and the last factor of a written-out
    normalisation, Gelu or Swish.

    The weights are computed in float64 and stored in their old dtype.

    Refused:
    1. The product with c has other readers, or is a graph output.
    2. The weights have other readers: the model would store the weights twice.
    3. c varies along other axes than the channels, raises the rank, or x is not provably at least as wide as c.
    4. A product overflows, or the intermediate result does although the final one does not. Or all products of a sum
       are too small to be normal numbers of the weights' dtype.
    5. A Gemm transposes its data.
    6. The weights of a MatMul are not a matrix.

    Weights that are not constants are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,1,4,4] y) <float[1,2,1,1] w = {2, 3}, float[2,1,1] c = {0.5, -1}> {
            a = Mul(x, c)
            y = Conv(a, w)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,1,4,4] y) <float[1,2,1,1] w = {1, -3}> {
            y = Conv(x, w)
        }
    """

    anchor = ("Conv", "ConvTranspose", "Gemm", "MatMul")
    steps_by = ("Mul", "Div", "Neg")


class ConvBias(AfterLinear):
    """Conv(x) + c is one Conv whose bias is b + c, if c is one number, or one number for each output channel. Conv(x) -
    c has the bias b - c. The same holds for ConvTranspose.

    The bias is computed in float64 and stored in its old dtype.

    Refused:
    1. The convolution's result has other readers, or is a graph output.
    2. The convolution has a bias that is not a constant.
    3. The constant varies along other axes than the channels, or raises the rank.
    4. The number of channels is not known.
    5. The sum of the two overflows.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y)
        <float[2,1,1,1] w = {2, 3}, float[2] b = {1, 2}, float[1,2,1,1] c = {0.5, -1}> {
            a = Conv(x, w, b)
            y = Add(a, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y)
        <float[2,1,1,1] w = {2, 3}, float[2] b = {1.5, 1}> {
            y = Conv(x, w, b)
        }
    """

    anchor = ("Add", "Sub")
    operators = ("Conv", "ConvTranspose")


class ConvMul(AfterLinear):
    """Conv(x) * c is one Conv with weights W·c and bias b·c, if c is one number, or one number for each output channel.
    Conv(x) / c has W/c and b/c, and -Conv(x) has -W and -b. The same holds for ConvTranspose.

    The weights are computed in float64 and stored in their old dtype.

    Refused:
    1. The convolution's result has other readers, or is a graph output.
    2. Weights or bias are not constants (a graph input with a default is not constant).
    3. The weights have other readers that are not scaled alike: the model would store the weights twice.
    4. The constant varies along other axes than the channels, or raises the rank.
    5. A product overflows, or the intermediate result does although the final one does not. Or all products of a sum
       are too small to be normal numbers of the weights' dtype.
    6. The number of channels is not known.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y)
        <float[2,1,1,1] w = {2, 3}, float[2] b = {1, 2}, float[2,1,1] c = {0.5, -1}> {
            a = Conv(x, w, b)
            y = Mul(a, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,2,4,4] y)
        <float[2,1,1,1] w = {1, -3}, float[2] b = {0.5, -2}> {
            y = Conv(x, w, b)
        }
    """

    anchor = ("Mul", "Div", "Neg")
    operators = ("Conv", "ConvTranspose")
