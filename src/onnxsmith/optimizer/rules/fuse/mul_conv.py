"""A factor for each channel before a convolution or a matrix product goes into its weights."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import BeforeLinear


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
    4. A product overflows, or all products of a sum are too small to be normal numbers of the weights' dtype.
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
