"""A summand for each channel before a convolution or a matrix product goes into its bias."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import BeforeLinear


class AddConv(BeforeLinear):
    """Conv(x + c) is Conv(x) with a bias of b and, for each output channel, the sum of W·c; c is one number or one
    for each channel of x. Conv(x - c) is Conv(x + -c). The same goes for Gemm, and for a MatMul of two matrices, which
    becomes one, with c along the last axis.

    A summand that can go into a linear operator before it does, and one that ends a normalisation that is written out
    stays there; this rule leaves them alone.

    The bias is computed in float64 and stored in the weights' dtype.

    Refused:
    1. The sum with c has other readers, or is a graph output.
    2. The convolution pads: the zeros are padded after c is added, so that the border would change.
    3. c varies along other axes than the channels, raises the rank, or is not provably broadcast to x (not x to it).
    4. There is a bias that is not a constant, or the new one overflows.
    5. A Gemm transposes its data.
    6. The MatMul is of higher rank, so that an Add would take the place of the Add.

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
