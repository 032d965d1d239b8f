"""A number for each channel, added after a convolution, goes into its bias."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import AfterLinear


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
