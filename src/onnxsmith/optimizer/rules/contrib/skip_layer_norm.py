"""A sum that is normalised is `SkipLayerNormalization`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _contrib
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_MADE = {"LayerNormalization": "SkipLayerNormalization", "RMSNormalization": "SkipSimplifiedLayerNormalization"}


class SkipLayerNorm(Rule):
    """LayerNormalization(x + y) is com.microsoft.SkipLayerNormalization(x, y), which returns the sum as well, and
    RMSNormalization(x + y) is com.microsoft.SkipSimplifiedLayerNormalization(x, y). Measured slower than the two
    operators on a CPU (onnxruntime 1.32: 5 to 7 times, and 2 times), so it runs only if `--only` names it.

    Refused:
    1. The dtype is not known to be float.
    2. The operands of the sum do not provably have the same shape, with three axes.

    A normalisation over other axes than the last, or whose mean or deviation is read, is no match.

    Before:
        <ir_version: 10, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,3,2] y) <float[2] s = {2, 3}, float[2] b = {1, -1}> {
            z = Tanh(x)
            a = Add(x, z)
            n = LayerNormalization <axis = -1, epsilon = 0.00001> (a, s, b)
            y = Add(n, a)
        }

    After:
        <ir_version: 10, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[N,3,2] x) => (float[N,3,2] y) <float[2] s = {2, 3}, float[2] b = {1, -1}> {
            z = Tanh(x)
            n, m, d, a = com.microsoft.SkipLayerNormalization <epsilon = 0.00001> (x, z, s, b)
            y = Add(n, a)
        }
    """

    anchor = tuple(_MADE)
    exactness = Exactness.REASSOCIATES
    domain = _contrib.DOMAIN
    slower = "5 to 7 times the time of Add and LayerNormalization, twice that of Add and RMSNormalization"

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        added = maker(node.inputs[0], node, "Add")
        if added is None or any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
            return None
        one, two = added.inputs
        dims = facts.dims(added.outputs[0])
        if one is None or two is None or dims is None or integer(node, "axis", -1) not in (-1, len(dims) - 1):
            return None
        if len(dims) != 3 or not facts.same(facts.dims(one), facts.dims(two)):
            return NoMatch("the operands of the sum are not provably of one shape with three axes", added)
        return _contrib.without_kernel(one, "SkipLayerNormalization") or Match(node, (node, added), {"sum": added})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> dict[ir.Value, ir.Value]:
        added: ir.Node = match.found["sum"]
        operands = [*added.inputs, *match.node.inputs[1:]]
        epsilon = match.node.attributes.get("epsilon")
        attributes = {"epsilon": epsilon.as_float() if epsilon is not None else 1e-5}
        made = tape.op_multi_out(_MADE[match.node.op_type], operands, attributes, num_outputs=4, domain=_contrib.DOMAIN)
        return {match.node.outputs[0]: made[0], added.outputs[0]: made[3]}
