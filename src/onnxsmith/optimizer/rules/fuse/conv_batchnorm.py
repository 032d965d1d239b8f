"""A batch normalisation after a convolution goes into its weights."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import AfterLinear


class ConvBatchNorm(AfterLinear):
    """BatchNormalization(Conv(x)) in inference is one Conv: with s = scale / sqrt(var + epsilon), its weights are W·s
    for each output channel and its bias is (b - mean)·s + B (S. Ioffe and C. Szegedy, 2015, section 3.1). The same
    holds for ConvTranspose.

    The weights are computed in float64 and stored in their old dtype.

    Refused:
    1. The convolution's result has other readers, or is a graph output.
    2. Weights, bias or statistics are not constants (a graph input with a default is not constant).
    3. The normalisation is in training mode, or gives more than one output.
    4. `spatial` is 0 (opsets 7 and 8): statistics then differ by position.
    5. The weights have other readers: the model would store them twice.
    6. A product overflows.

    The rule does not match before opset 7, where an attribute selected the training mode.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y)
        <float[1,1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.99999}> {
            a = Conv(x, w)
            y = BatchNormalization(a, s, b, m, v)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y)
        <float[1,1,1,1] w2 = {6}, float[1] b2 = {-0.5}> {
            y = Conv(x, w2, b2)
        }
    """

    anchor = ("BatchNormalization",)
    operators = ("Conv", "ConvTranspose")
    underflow = True
