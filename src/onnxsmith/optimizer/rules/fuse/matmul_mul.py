"""A factor for each column after a product with a constant matrix goes into the matrix."""

from __future__ import annotations

from onnxsmith.optimizer.rules._fold_into_weights import AfterLinear


class MatmulMul(AfterLinear):
    """MatMul(x, W) * c is one MatMul with W·c, if c is one number, or one number for each column of W. Div by c and Neg
    are factors, too. Gemm's bias becomes b·c; MatMul(x, W) + b becomes MatMul(x, W·c) + b·c.

    The weights are computed in float64 and stored in their old dtype.

    Refused:
    1. The product, or its sum with the bias, has other readers, or is a graph output.
    2. A Gemm's weights or bias are not constants (a graph input with a default is not constant).
    3. The weights have other readers that are not scaled alike: the model would store the weights twice.
    4. The factor varies along other axes than the last, or raises the rank; or the bias does.
    5. A product overflows, or all products of a sum are too small to be normal numbers of the weights' dtype.
    6. The shape of a Gemm's weights is not known, or a MatMul's weights are not a matrix.

    A MatMul of two values that are not constants is no match, nor is a constant on its left.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,3,2] y)
        <float[2,2] w = {1, 2, 3, 4}, float[2] b = {1, -1}, float c = {0.5}> {
            a = MatMul(x, w)
            s = Add(a, b)
            y = Mul(s, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,3,2] y) <float[2,2] w = {0.5, 1, 1.5, 2}, float[2] b = {0.5, -0.5}> {
            a = MatMul(x, w)
            y = Add(a, b)
        }
    """

    anchor = ("Mul", "Div", "Neg")
    operators = ("Gemm", "MatMul")
