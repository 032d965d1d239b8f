"""Fuses activations that are written out."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _activations
from onnxsmith.optimizer.rules._patterns import FLOATS, maker, read_elsewhere, too_old, two_ways
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


def _fused(node: ir.Node, found: _activations.Found, operator: str, since: int, **more: object) -> Match | NoMatch:
    """Returns the match of an activation that opset `since` introduced, or why it is refused."""
    if found.source.dtype not in FLOATS:
        return NoMatch("the dtype is not known to be floating point", found.source)
    refusal = too_old(node, operator, since) or read_elsewhere(found.nodes)
    return refusal or Match(node, found.nodes, {"source": found.source, **more})


class Gelu(Rule):
    """x/2 · (1 + erf(x/√2)) is Gelu(x), and x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))) is its approximation (D.
    Hendrycks and K. Gimpel, 2016), for any order of factors and summands, and wherever the constants are multiplied in.

    Equal up to rounding for every number whose intermediate values stay within the dtype, and for infinities and NaN.
    If x · (1 + erf(…)) comes before the half, a number above half of the largest overflows: it gave infinity, and gives
    x afterwards. The overflow of x³ in the approximation changes nothing, because tanh is ±1 there.

    Refused:
    1. The model's opset is below 20, which introduced Gelu.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float16, float or double.

    Other constants, or constants that raise the rank, are no match.

    Before:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N] x) => (float[N] y) <float root = {1.4142135}, float one = {1}, float half = {0.5}> {
            a = Div(x, root)
            b = Erf(a)
            c = Add(b, one)
            d = Mul(x, c)
            y = Mul(d, half)
        }

    After:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N] x) => (float[N] y) {
            y = Gelu <approximate = "none"> (x)
        }
    """

    anchor = ("Mul", "Div")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for approximate, formula in _activations.GELU.items():
            found = _activations.find(node, formula)
            if found is not None:
                return _fused(node, found, "Gelu", 20, approximate=approximate)
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Gelu", [match.found["source"]], {"approximate": match.found["approximate"]})


_SIXTH = _activations.Formula(("Clip",), {(1, 0): 1.0, (0, 0): 3.0}, {(0, 1): 1 / 6})
_ANY = _activations.Formula(("Clip",), None, {(0, 1): 1.0})


class HardSigmoid(Rule):
    """Clip(a·x + b, 0, 1) is HardSigmoid(x) with alpha = a and beta = b, and Clip(x + 3, 0, 6) / 6 is HardSigmoid(x)
    with 1/6 and 1/2, as in MobileNetV3 (A. Howard and others, 2019).

    Equal up to rounding for all numbers, infinities and NaN: the Clip limits values that overflow before it.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The dtype is not known to be float16 or float: runtimes lack the operator for double.

    No match: other bounds, a Clip of x + b (only two nodes), and opsets below 7.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y)
        <float three = {3}, float low = {0}, float high = {6}, float six = {6}> {
            a = Add(x, three)
            b = Clip(a, low, high)
            y = Div(b, six)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x)
        }
    """

    anchor = ("Clip", "Mul", "Div")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if facts.opset(node) < 7:
            return None
        formula, bounds = (_ANY, (0.0, 1.0)) if node.op_type == "Clip" else (_SIXTH, (0.0, 6.0))
        found = next((way for way in _activations.ways(node, formula) if len(way.nodes) > 2), None)
        if found is None or _activations.clip_bounds(found.gate[0]) != bounds:
            return None
        if found.source.dtype not in (ir.DataType.FLOAT16, ir.DataType.FLOAT):
            return NoMatch("the dtype is unknown, or HardSigmoid does not support it", found.source)
        line = {(1, 0): 1 / 6, (0, 0): 0.5} if formula is _SIXTH else found.argument
        attributes = {"alpha": _float32(line[1, 0]), "beta": _float32(line.get((0, 0), 0.0))}
        return read_elsewhere(found.nodes) or Match(
            node, found.nodes, {"source": found.source, "attributes": attributes}
        )

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("HardSigmoid", [match.found["source"]], match.found["attributes"])


def _float32(number: float) -> float:
    """Returns the number rounded to float32, as attributes store it."""
    return float(np.float32(number))


_HARDSWISH_SINCE = 14
"""Is the opset that introduced HardSwish."""
_CLIPPED = {
    (0.0, 6.0): _activations.Formula(("Clip",), {(1, 0): 1.0, (0, 0): 3.0}, {(1, 1): 1 / 6}),
    (0.0, 1.0): _activations.Formula(("Clip",), {(1, 0): 1 / 6, (0, 0): 0.5}, {(1, 1): 1.0}),
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
            if not (_is_attribute(gate, "alpha", 0.2, 1 / 6) and _is_attribute(gate, "beta", 0.5, 0.5)):
                return NoMatch("the HardSigmoid has another slope or offset", gate)
            if source.dtype not in FLOATS:
                return NoMatch("the dtype is not known to be floating point", source)
            refusal = too_old(node, "HardSwish", _HARDSWISH_SINCE) or read_elsewhere((node, gate))
            return refusal or Match(node, (node, gate), {"source": source})
        for bounds, formula in _CLIPPED.items():
            found = _activations.find(node, formula)
            if found is None or _activations.clip_bounds(found.gate[0]) != bounds:
                continue
            if found.source.dtype not in (ir.DataType.FLOAT16, ir.DataType.FLOAT):
                return NoMatch("the dtype is unknown, or HardSigmoid does not support it", found.source)
            return read_elsewhere(found.nodes) or Match(node, found.nodes, {"source": found.source})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source = match.found["source"]
        if facts.opset(match.node) >= _HARDSWISH_SINCE:
            return tape.op("HardSwish", [source])
        return tape.op("Mul", [source, tape.op("HardSigmoid", [source], {"alpha": 1 / 6, "beta": 0.5})])


def _is_attribute(node: ir.Node, name: str, default: float, wanted: float) -> bool:
    attribute = node.attributes.get(name)
    if attribute is None:
        return default == wanted
    return not attribute.is_ref() and abs(attribute.as_float() - wanted) < 1e-7


_MISH = _activations.Formula(("Tanh", "Softplus"), {(1, 0): 1.0}, {(1, 1): 1.0})


class Mish(Rule):
    """x * Tanh(Softplus(x)) is Mish(x), by the definition of that operator (D. Misra, 2019).

    Equal up to rounding for all numbers, infinities and NaN.

    Refused:
    1. The model's opset is below 18, which introduced Mish.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float16, float or double.

    A Softplus that is itself written out, as Log(1 + Exp(x)), is no match: it overflows and underflows earlier.

    Before:
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N] x) => (float[N] y) {
            a = Softplus(x)
            b = Tanh(a)
            y = Mul(x, b)
        }

    After:
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N] x) => (float[N] y) {
            y = Mish(x)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _activations.find(node, _MISH)
        return None if found is None else _fused(node, found, "Mish", 18)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Mish", [match.found["source"]])


class Swish(Rule):
    """x * Sigmoid(x) is Swish(x), also called SiLU, and x * Sigmoid(a·x) is Swish with alpha = a, also called QuickGelu
    for a = 1.702 (P. Ramachandran and others, 2017).

    Equal up to rounding for all numbers, infinities and NaN: if a·x overflows, the Sigmoid is 0 or 1 already.

    Refused:
    1. The model's opset is below 24, which introduced Swish.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float16, float or double.

    Before:
        <ir_version: 10, opset_import: ["": 24]>
        g (float[N] x) => (float[N] y) {
            a = Sigmoid(x)
            y = Mul(x, a)
        }

    After:
        <ir_version: 10, opset_import: ["": 24]>
        g (float[N] x) => (float[N] y) {
            y = Swish(x)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES
    makes = "Swish"

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _activations.swish(node)
        return None if found is None else _fused(node, found, "Swish", 24, alpha=found.argument[1, 0])

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        alpha = match.found["alpha"]
        return tape.op("Swish", [match.found["source"]], {"alpha": alpha} if alpha != 1 else {})
