"""A summand for each channel before a convolution or a matrix product goes into its bias."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import BeforeLinear


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
