"""`HardSigmoid`, written out with `Clip`."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _formula
from onnxsmith.optimizer.rules._patterns import read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_SIXTH = _formula.Formula(("Clip",), {(1, 0): 1.0, (0, 0): 3.0}, {(0, 1): 1 / 6})
_ANY = _formula.Formula(("Clip",), None, {(0, 1): 1.0})


class HardSigmoid(Rule):
    """Clip(a·x + b, 0, 1) is HardSigmoid(x) with alpha = a and beta = b, and Clip(x + 3, 0, 6) / 6 is HardSigmoid(x)
    with 1/6 and 1/2.

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
        found = next((way for way in _formula.ways(node, formula) if len(way.nodes) > 2), None)
        if found is None or _formula.clip_bounds(found.gate[0]) != bounds:
            return None
        if found.source.dtype not in (ir.DataType.FLOAT16, ir.DataType.FLOAT):
            return NoMatch("the dtype is not known to be one that HardSigmoid is there for", found.source)
        line = {(1, 0): 1 / 6, (0, 0): 0.5} if formula is _SIXTH else found.argument
        attributes = {"alpha": _stored(line[1, 0]), "beta": _stored(line.get((0, 0), 0.0))}
        return read_elsewhere(found.nodes) or Match(
            node, found.nodes, {"source": found.source, "attributes": attributes}
        )

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("HardSigmoid", [match.found["source"]], match.found["attributes"])


def _stored(number: float) -> float:
    """Returns the number rounded to float32, as attributes store it."""
    return float(np.float32(number))
