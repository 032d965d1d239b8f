"""A constant row added after a matrix product goes into its bias."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import AfterLinear


class GemmBias(AfterLinear):
    """Gemm(x, W, b) + c is one Gemm with the bias beta·b + c, if c is one number, or one number for each column of W.
    Gemm(x, W, b) - c has the bias beta·b - c. fuse/matmul-add-gemm turns a MatMul into a Gemm.

    The bias is computed in float64 and stored in its old dtype.

    Refused:
    1. The product has other readers, or is a graph output.
    2. The Gemm has a bias that is not a constant, or that varies along the rows.
    3. The constant varies along other axes than the last, or raises the rank.
    4. The shape of the weights is not known.
    5. The sum of the two overflows.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y)
        <float[2,2] w = {1, 2, 3, 4}, float[2] b = {1, 2}, float[1,2] c = {0.5, -1}> {
            a = Gemm <beta = 2.0> (x, w, b)
            y = Add(a, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2] b = {2.5, 3}> {
            y = Gemm(x, w, b)
        }
    """

    anchor = ("Add", "Sub")
    operators = ("Gemm",)
