"""A batch normalisation after a matrix product goes into its weights."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import AfterLinear


class GemmBatchnorm(AfterLinear):
    """BatchNormalization(Gemm(x)) in inference is one Gemm, by the formulas of fuse/conv-batchnorm. A MatMul of two
    matrices becomes a Gemm.

    The weights are computed in float64 and stored in their old dtype.

    Refused:
    1. The product has other readers, or is a graph output.
    2. Weights, bias or statistics are not constants (a graph input with a default is not constant).
    3. The normalisation is in training mode, or gives more than one output.
    4. `spatial` is 0 (opsets 7 and 8): statistics then differ by position.
    5. The weights have other readers: the model would store them twice.
    6. The MatMul is of higher rank: its columns are then not the channels, which are axis 1.
    7. A product overflows.

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
