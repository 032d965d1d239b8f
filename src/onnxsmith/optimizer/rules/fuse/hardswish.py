"""A value times its own `HardSigmoid`, or the `Clip` that it is written out with, is `HardSwish`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _formula
from onnxsmith.optimizer.rules._patterns import FLOATS, maker, read_elsewhere, too_old, two_ways
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_SINCE = 14
"""The opset that brought HardSwish."""
_CLIPPED = {
    (0.0, 6.0): _formula.Formula(("Clip",), {(1, 0): 1.0, (0, 0): 3.0}, {(1, 1): 1 / 6}),
    (0.0, 1.0): _formula.Formula(("Clip",), {(1, 0): 1 / 6, (0, 0): 0.5}, {(1, 1): 1.0}),
}


class Hardswish(Rule):
    """x * HardSigmoid(x) with alpha = 1/6 and beta = 1/2 is HardSwish(x), by the definition of that operator; so is x *
    Clip(x + 3, 0, 6) / 6, in any order (A. Howard and others, 2019). Before opset 14 the latter becomes x *
    HardSigmoid(x).

    Equal up to rounding for every number whose intermediate values stay within the dtype, and for infinities and NaN. A
    number above a sixth of the largest overflows in x * Clip(x + 3, 0, 6): it gave infinity, and gives x afterwards.

    Refused:
    1. The model's opset is below 14, which introduced HardSwish, and the model has the HardSigmoid already.
    2. The HardSigmoid has another slope or offset (its defaults are 0.2 and 0.5), or they refer to a function's
       attributes.
    3. An intermediate result has other readers, or is a graph output.
    4. The dtype is not known to be float16, float or double; for a Clip, to be float16 or float, because runtimes lack
       HardSigmoid for double.

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

    anchor = ("Mul", "Div")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for source, other in two_ways(node) if node.op_type == "Mul" else ():
            gate = maker(other, node, "HardSigmoid")
            if gate is None or gate.inputs[0] is not source:
                continue
            if not (_is(gate, "alpha", 0.2, 1 / 6) and _is(gate, "beta", 0.5, 0.5)):
                return NoMatch("the HardSigmoid has another slope or offset", gate)
            if source.dtype not in FLOATS:
                return NoMatch("the dtype is not known to be floating point", source)
            refusal = too_old(node, "HardSwish", _SINCE) or read_elsewhere((node, gate))
            return refusal or Match(node, (node, gate), {"source": source})
        for bounds, formula in _CLIPPED.items():
            found = _formula.find(node, formula)
            if found is None or _formula.clip_bounds(found.gate[0]) != bounds:
                continue
            if found.source.dtype not in (ir.DataType.FLOAT16, ir.DataType.FLOAT):
                return NoMatch("the dtype is not known to be one that HardSigmoid is there for", found.source)
            return read_elsewhere(found.nodes) or Match(node, found.nodes, {"source": found.source})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source = match.found["source"]
        if facts.opset(match.node) >= _SINCE:
            return tape.op("HardSwish", [source])
        return tape.op("Mul", [source, tape.op("HardSigmoid", [source], {"alpha": 1 / 6, "beta": 0.5})])


def _is(node: ir.Node, name: str, default: float, wanted: float) -> bool:
    attribute = node.attributes.get(name)
    if attribute is None:
        return default == wanted
    return not attribute.is_ref() and abs(attribute.as_float() - wanted) < 1e-7
