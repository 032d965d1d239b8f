"""`CastLike` with a known dtype."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class Castlike(Rule):
    """CastLike(x, y) is Cast(x) to the dtype of y, and no longer needs y. algebra/cast-same removes the Cast if it
    changes nothing.

    Refused:
    1. The dtype of y is not known, for example in a function, whose callers decide it.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (int64[N] x, float[N] like) => (float[N] y) {
            a = CastLike(x, like)
            y = Add(a, like)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (int64[N] x, float[N] like) => (float[N] y) {
            a = Cast <to = 1> (x)
            y = Add(a, like)
        }
    """

    anchor = ("CastLike",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        like = node.inputs[1]
        if like is None or like.dtype is None or like.dtype is ir.DataType.UNDEFINED:
            return NoMatch("the dtype to cast to is not known", like.name or "" if like is not None else "")
        return Match(node, (node,), {"to": int(like.dtype)})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        attributes = {**match.node.attributes, "to": match.found["to"]}
        return tape.op("Cast", [match.node.inputs[0]], attributes)
