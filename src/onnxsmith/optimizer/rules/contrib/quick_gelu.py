"""A value times its own `Sigmoid` is `QuickGelu`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules import _contrib, _formula
from onnxsmith.optimizer.rules._patterns import read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_FORMULA = _formula.Formula(("Sigmoid",), None, {(1, 1): 1.0})


class QuickGelu(Rule):
    """x * Sigmoid(a·x) is com.microsoft.QuickGelu with alpha = a. With its default optimisations, onnxruntime makes
    this operator itself when it loads a file, but not from Swish, for which it has no kernel.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The dtype is not known to be float.

    Before:
        <ir_version: 10, opset_import: ["": 24]>
        g (float[N] x) => (float[N] y) {
            a = Sigmoid(x)
            y = Mul(x, a)
        }

    After:
        <ir_version: 10, opset_import: ["": 24, "com.microsoft": 1]>
        g (float[N] x) => (float[N] y) {
            y = com.microsoft.QuickGelu <alpha = 1.0> (x)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES
    domain = _contrib.DOMAIN

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = next((way for way in _formula.ways(node, _FORMULA) if not way.argument.get((0, 0))), None)
        if found is None:
            return None
        refusal = _contrib.without_kernel(found.source, "QuickGelu") or read_elsewhere(found.nodes)
        return refusal or Match(node, found.nodes, {"source": found.source, "alpha": found.argument[1, 0]})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        attributes = {"alpha": float(match.found["alpha"])}
        return tape.op("QuickGelu", [match.found["source"]], attributes, domain=_contrib.DOMAIN)
