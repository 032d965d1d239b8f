"""A layer normalisation that is written out."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.rules import _norm
from onnxsmith.rules._patterns import maker, read_elsewhere, too_old
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class LayerNorm(Rule):
    """With d = x - mean(x), d / sqrt(mean(d²) + epsilon) · scale + bias over the last axes is LayerNormalization
    (J. Ba, J. Kiros and G. Hinton, 2016). Without a scale it gets one of ones, which the operator asks for.

    Refused:
    1. The model's opset is below 17, which brought LayerNormalization.
    2. A result in the middle is read by others too, or is a graph output.
    3. The dtype is not known to be float: the operator computes in float, which is less than double and more than
       float16.
    4. The sizes of the normalised axes are not known numbers.
    5. Scale or bias do not have exactly the normalised axes.

    Means that drop their axes, or go over others than the last ones, are no match; nor is an epsilon of 0.

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

    anchor = ("Add", "Mul", "Div")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _norm.affine(node)
        centre = maker(found.normed.value, node, "Sub") if found is not None else None
        mean = maker(centre.inputs[1], node, "ReduceMean") if centre is not None else None
        if found is None or centre is None or mean is None or _norm.goes_on(node, found):
            return None
        source = centre.inputs[0]
        if source is None or mean.inputs[0] is not source or _norm.last_axes(mean) != found.normed.axes:
            return None
        if source.dtype is not ir.DataType.FLOAT:
            return NoMatch("the dtype is not known to be float", source.name or "")
        sizes = _norm.sizes(found)
        if isinstance(sizes, NoMatch):
            return sizes
        if not _norm.axes_agree(found):
            return NoMatch("scale or bias do not have the normalised axes", node.name or "")
        every = (*found.nodes, centre, mean)
        refusal = too_old(node, "LayerNormalization", 17) or read_elsewhere(every)
        return refusal or Match(node, every, {"source": source, "sizes": sizes, "affine": found})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        found: _norm.Affine = match.found["affine"]
        scale = found.scale
        if scale is None:
            scale = tape.initializer(ir.tensor(np.ones(match.found["sizes"], np.float32)), name="ones")
        inputs = [match.found["source"], scale, *([found.bias] if found.bias is not None else [])]
        attributes = {"axis": -found.normed.axes, "epsilon": found.normed.epsilon}
        return tape.op("LayerNormalization", inputs, attributes)
