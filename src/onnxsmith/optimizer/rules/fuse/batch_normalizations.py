"""Folds a batch normalisation into the weights of a convolution or a matrix product."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import AfterLinear, BeforeLinear


class ConvBatchnorm(AfterLinear):
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
    6. A product overflows, or the intermediate result does although the final one does not.

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


class GemmBatchnorm(AfterLinear):
    """BatchNormalization(Gemm(x)) in inference is one Gemm, by the formulas of fuse/conv-batchnorm. A MatMul of two
    matrices becomes a Gemm. The linear layers of PointNet are normalised like this.

    The weights are computed in float64 and stored in their old dtype.

    Refused:
    1. The product has other readers, or is a graph output.
    2. Weights, bias or statistics are not constants (a graph input with a default is not constant).
    3. The normalisation is in training mode, or gives more than one output.
    4. `spatial` is 0 (opsets 7 and 8): statistics then differ by position.
    5. The weights have other readers: the model would store them twice.
    6. The MatMul is of higher rank: its columns are then not the channels, which are axis 1.
    7. A product overflows, or the intermediate result does although the final one does not.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1] x) => (float[N,1] y)
        <float[1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.99999}> {
            a = MatMul(x, w)
            y = BatchNormalization(a, s, b, m, v)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1] x) => (float[N,1] y) <float[1,1] w2 = {6}, float[1] b2 = {-0.5}> {
            y = Gemm(x, w2, b2)
        }
    """

    anchor = ("BatchNormalization",)
    operators = ("Gemm", "MatMul")
    underflow = True


class BatchnormConv(BeforeLinear):
    """Conv(BatchNormalization(x)) in inference is one Conv: with s = scale / sqrt(var + epsilon), its weights are W·s
    along the input channels, and its bias is b plus the sum of W·(B - mean·s). The same holds for Gemm, and for a
    MatMul of two matrices, which becomes a Gemm. It holds for ConvTranspose if B - mean·s is 0 or the kernel is one
    pixel.

    This rule leaves a normalisation that a linear operator before it can take.

    The weights are computed in float64 and stored in their old dtype.

    Refused:
    1. The normalisation's result has other readers, or is a graph output.
    2. Bias or statistics are not constants (a graph input with a default is not constant).
    3. The normalisation is in training mode, or gives more than one output.
    4. `spatial` is 0 (opsets 7 and 8): statistics then differ by position.
    5. The weights have other readers: the model would store them twice.
    6. The convolution pads: it pads zeros after the normalisation, so the border would change.
    7. A product or the bias overflows, or the intermediate result does although the final one does not.
    8. A ConvTranspose has a larger kernel, a stride or larger outputs: a shift then reaches each position by other
       weights.
    9. A Gemm transposes its data, or the MatMul is of higher rank: its columns are then not the channels.

    Weights that are not constants are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y)
        <float[1,1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.99999}> {
            a = BatchNormalization(x, s, b, m, v)
            y = Conv(a, w)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) <float[1,1,1,1] w2 = {6}, float[1] b2 = {-1}> {
            y = Conv(x, w2, b2)
        }
    """

    anchor = ("Conv", "ConvTranspose", "Gemm", "MatMul")
    steps_by = ("BatchNormalization",)
    underflow = True
