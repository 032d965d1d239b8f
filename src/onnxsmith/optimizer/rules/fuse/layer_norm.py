"""A layer normalisation that is written out."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules import _written_out_norms
from onnxsmith.optimizer.rules._patterns import maker


class LayerNorm(_written_out_norms.WrittenOut):
    """With d = x - mean(x), d / sqrt(mean(d²) + epsilon) · scale + bias over the last axes is LayerNormalization (J.
    Ba, J. Kiros and G. Hinton, 2016). Without a scale, the operator gets a scale of ones, which it requires. Casts of
    16-bit floats to float before it, and back before scale and bias, are removed, because the operator computes in
    float by itself.

    Equal up to rounding if the sum of the elements and the sum of the squares stay within the dtype. Otherwise, in
    float from about 1e19 on, both forms give zeros or NaN, but not always the same.

    Refused:
    1. The model's opset is below 17, which introduced LayerNormalization.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float, or 16 bits that are widened to float: the operator computes in float, which
       is less exact than double and more exact than float16.
    4. The sizes of the normalised axes are not known numbers.
    5. Scale or bias do not have exactly the normalised axes.

    No match: means that drop their axes, or go over other axes than the last; an epsilon of 0.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y)
        <float two = {2}, float eps = {0.00001}, float[2] s = {2, 3}, float[2] b = {1, -1}> {
            m = ReduceMean <axes = [-1]> (x)
            d = Sub(x, m)
            q = Pow(d, two)
            v = ReduceMean <axes = [-1]> (q)
            e = Add(v, eps)
            r = Sqrt(e)
            n = Div(d, r)
            p = Mul(n, s)
            y = Add(p, b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2] s = {2, 3}, float[2] b = {1, -1}> {
            y = LayerNormalization <axis = -1, epsilon = 0.00001> (x, s, b)
        }
    """

    anchor = ("Add", "Mul", "Div", "Cast")
    operator = "LayerNormalization"
    since = 17
    follows = ("Add", "Mul", "Cast")

    def source(self, found: _written_out_norms.Affine, node: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
        centre = maker(found.normed.value, node, "Sub")
        mean = maker(centre.inputs[1], node, "ReduceMean") if centre is not None else None
        data = centre.inputs[0] if centre is not None else None
        if centre is None or mean is None or data is None or mean.inputs[0] is not data:
            return None
        return (data, (centre, mean)) if _written_out_norms.last_axes(mean) == found.normed.axes else None
