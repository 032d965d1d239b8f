"""A root-mean-square normalisation that is written out."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.rules import _norm
from onnxsmith.rules._patterns import maker, read_elsewhere, too_old
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class RmsNorm(Rule):
    """x / sqrt(mean(x²) + epsilon) · scale over the last axes is RMSNormalization (B. Zhang and R. Sennrich, 2019).
    Without a scale it gets one of ones, which the operator asks for. A bias after it stays an Add.

    Refused:
    1. The model's opset is below 23, which brought RMSNormalization.
    2. A result in the middle is read by others too, or is a graph output.
    3. The dtype is not known to be float: the operator computes in float, which is less than double and more than
       float16.
    4. The sizes of the normalised axes are not known numbers.
    5. The scale does not have exactly the normalised axes.

    Means that drop their axes, or go over others than the last ones, are no match; nor is an epsilon of 0.

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

    anchor = ("Mul", "Div")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _norm.affine(node)
        if found is None or (_norm.goes_on(node, found) and _reader_scales(node)):
            return None
        source = found.normed.value
        centre = maker(source, node, "Sub")
        if centre is not None and maker(centre.inputs[1], node, "ReduceMean") is not None:
            return None
        if source.dtype is not ir.DataType.FLOAT:
            return NoMatch("the dtype is not known to be float", source.name or "")
        sizes = _norm.sizes(found)
        if isinstance(sizes, NoMatch):
            return sizes
        if not _norm.axes_agree(found):
            return NoMatch("the scale does not have the normalised axes", node.name or "")
        refusal = too_old(node, "RMSNormalization", 23) or read_elsewhere(found.nodes)
        return refusal or Match(node, found.nodes, {"source": source, "sizes": sizes, "affine": found})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        found: _norm.Affine = match.found["affine"]
        scale = found.scale
        if scale is None:
            scale = tape.initializer(ir.tensor(np.ones(match.found["sizes"], np.float32)), name="ones")
        attributes = {"axis": -found.normed.axes, "epsilon": found.normed.epsilon}
        return tape.op("RMSNormalization", [match.found["source"], scale], attributes)


def _reader_scales(node: ir.Node) -> bool:
    """Whether what reads the node is the factor; a summand has no place in this operator."""
    return all(reader.op_type == "Mul" for reader in node.outputs[0].consumers())
