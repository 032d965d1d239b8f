"""A factor for each channel after a convolution goes into its weights."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import AfterLinear


class ConvMul(AfterLinear):
    """Conv(x) * c is one Conv with weights W·c and bias b·c, if c is one number, or one number for each output channel.
    Conv(x) / c has W/c and b/c, and -Conv(x) has -W and -b. The same holds for ConvTranspose.

    The weights are computed in float64 and stored in their old dtype.

    Refused:
    1. The convolution's result has other readers, or is a graph output.
    2. Weights or bias are not constants (a graph input with a default is not constant).
    3. The weights have other readers that are not scaled alike: the model would store the weights twice.
    4. The constant varies along other axes than the channels, or raises the rank.
    5. A product overflows, or all products of a sum are too small to be normal numbers of the weights' dtype.
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
