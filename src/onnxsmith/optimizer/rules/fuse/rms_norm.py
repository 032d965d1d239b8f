"""A root-mean-square normalisation that is written out."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules import _written_out_norms
from onnxsmith.optimizer.rules._patterns import maker


class RmsNorm(_written_out_norms.WrittenOut):
    """x / sqrt(mean(x²) + epsilon) · scale over the last axes is RMSNormalization (B. Zhang and R. Sennrich, 2019).
    Without a scale, the operator gets a scale of ones, which it requires. A bias after it stays an Add. Casts of 16-bit
    floats to float before it, and back before the scale, are removed, because the operator computes in float by itself.

    Equal up to rounding if the sum of the squares stays within the dtype. Otherwise, in float from about 1e19 on, both
    forms give zeros or NaN, but not always the same.

    Refused:
    1. The model's opset is below 23, which introduced RMSNormalization.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float, or 16 bits that are widened to float: the operator computes in float, which
       is less exact than double and more exact than float16.
    4. The sizes of the normalised axes are not known numbers.
    5. The scale does not have exactly the normalised axes.

    No match: means that drop their axes, or go over other axes than the last; an epsilon of 0.

    Before:
        <ir_version: 10, opset_import: ["": 23]>
        g (float[N,2] x) => (float[N,2] y)
        <float two = {2}, float eps = {0.00001}, float[2] s = {2, 3}, int64[1] last = {-1}> {
            q = Pow(x, two)
            v = ReduceMean(q, last)
            e = Add(v, eps)
            r = Sqrt(e)
            i = Reciprocal(r)
            n = Mul(x, i)
            y = Mul(s, n)
        }

    After:
        <ir_version: 10, opset_import: ["": 23]>
        g (float[N,2] x) => (float[N,2] y) <float[2] s = {2, 3}> {
            y = RMSNormalization <axis = -1, epsilon = 0.00001> (x, s)
        }
    """

    anchor = ("Mul", "Div", "Cast")
    makes = operator = "RMSNormalization"
    since = 23
    follows = ("Mul", "Cast")

    def source(self, found: _written_out_norms.Affine, node: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
        centre = maker(found.normed.value, node, "Sub")
        is_centred = centre is not None and maker(centre.inputs[1], node, "ReduceMean") is not None
        return None if is_centred else (found.normed.value, ())
