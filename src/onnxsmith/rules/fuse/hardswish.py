"""A value times its own `HardSigmoid` is `HardSwish`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.rules._patterns import FLOATS, maker, read_elsewhere, too_old, two_ways
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class Hardswish(Rule):
    """x * HardSigmoid(x) with alpha = 1/6 and beta = 1/2 is HardSwish(x), by the definition of that operator.

    Refused:
    1. The model's opset is below 14, which brought HardSwish.
    2. The HardSigmoid has another slope or offset (its defaults are 0.2 and 0.5), or takes them from its function.
    3. The HardSigmoid is read by others too, or is a graph output.
    4. The dtype is not known to be float16, float or double.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            a = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x)
            y = Mul(x, a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = HardSwish(x)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for source, other in two_ways(node):
            gate = maker(other, node, "HardSigmoid")
            if gate is None or gate.inputs[0] is not source:
                continue
            if not (_is(gate, "alpha", 0.2, 1 / 6) and _is(gate, "beta", 0.5, 0.5)):
                return NoMatch("the HardSigmoid has another slope or offset", gate.name or "")
            if source.dtype not in FLOATS:
                return NoMatch("the dtype is not known to be floating point", source.name or "")
            refusal = too_old(node, "HardSwish", 14) or read_elsewhere((node, gate))
            return refusal or Match(node, (node, gate), {"source": source})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("HardSwish", [match.found["source"]])


def _is(node: ir.Node, name: str, default: float, wanted: float) -> bool:
    attribute = node.attributes.get(name)
    if attribute is None:
        return default == wanted
    return not attribute.is_ref() and abs(attribute.as_float() - wanted) < 1e-7
