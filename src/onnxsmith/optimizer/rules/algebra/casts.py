"""Removes and joins `Cast`, and replaces `CastLike`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found


_T = ir.DataType
_INTEGERS = {  # the smallest and the largest number
    _T.BOOL: (0, 1),
    **{dtype: (0, 2**bits - 1) for bits, dtype in ((8, _T.UINT8), (16, _T.UINT16), (32, _T.UINT32), (64, _T.UINT64))},
    **{
        dtype: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for bits, dtype in ((8, _T.INT8), (16, _T.INT16), (32, _T.INT32), (64, _T.INT64))
    },
}
_FLOATS = {_T.FLOAT16: (11, 5), _T.BFLOAT16: (8, 8), _T.FLOAT: (24, 8), _T.DOUBLE: (53, 11)}
"""Gives the bits of precision and of the exponent (IEEE 754)."""


class CastChain(PatternRule):
    """Cast(Cast(x, wide), t) is Cast(x, t) if `wide` holds every value of x's dtype: int32 to int64, float16 to float,
    bool to any dtype. float to bfloat16 and back stays. Other readers of the intermediate value keep it.

    Refused:
    1. The first Cast rounds, wraps or overflows some values.
    2. The second Cast goes from floating point to integers that do not hold all of x's values. The runtime decides the
       result for NaN and values out of range, and it may depend on the dtype before the Cast.
    3. The second Cast goes to 16-bit floating point and x is an integer: runtimes cast through float.

    Dtypes other than bool, integers from 8 to 64 bits and float16, bfloat16, float, double are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (int32[N] x) => (float[N] y) {
            a = Cast <to = 7> (x)
            y = Cast <to = 1> (a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (int32[N] x) => (float[N] y) {
            y = Cast <to = 1> (x)
        }
    """

    anchor = ("Cast",)
    exactness = Exactness.BITWISE
    pattern = "a = Cast <to = ?middle> (x)  y = Cast <to = ?to> (a)"
    replacement = "Cast <to = ?to> (x)"

    def check(self, found: Found) -> Answer:
        dtypes = (found["x"].dtype, found.integer("middle"), found.integer("to"))
        if not {*dtypes} <= {*_INTEGERS, *_FLOATS}:
            return None
        a, b, c = (_T(dtype or 0) for dtype in dtypes)
        if not _holds(b, a):
            return NoMatch(f"not every {a.name} is a {b.name}", found.made("a"))
        if b in _FLOATS and c in _INTEGERS and c is not _T.BOOL and not _holds(c, a):
            why = f"not every {a.name} is a {c.name}, and the conversion of other values is not defined"
            return NoMatch(why, found.node)
        if a in _INTEGERS and c in (_T.FLOAT16, _T.BFLOAT16) and not _holds(c, a):
            return NoMatch(f"{a.name} to {c.name} may round twice", found.node)
        return {}


def _holds(wide: ir.DataType, narrow: ir.DataType) -> bool:
    """Whether `wide` can represent each value of `narrow`."""
    if wide is narrow:
        return True
    if narrow in _FLOATS:
        return wide in _FLOATS and all(a >= b for a, b in zip(_FLOATS[wide], _FLOATS[narrow], strict=True))
    low, high = _INTEGERS[narrow]
    if wide in _FLOATS:
        return bool(max(-low, high) <= 2 ** _FLOATS[wide][0])
    return wide is not _T.BOOL and _INTEGERS[wide][0] <= low and high <= _INTEGERS[wide][1]


class CastSame(PatternRule):
    """A Cast to the input's own dtype changes nothing.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            a = Cast <to = 1> (x)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) {
            y = Relu(x)
        }
    """

    anchor = ("Cast",)
    exactness = Exactness.BITWISE
    pattern = "Cast <to = ?to> (x)"
    replacement = "x"

    def check(self, found: Found) -> Answer:
        dtype = found["x"].dtype
        return {} if dtype is not None and dtype == found.integer("to") else None


class Castlike(Rule):
    """CastLike(x, y) is Cast(x) to the dtype of y, and no longer needs y. algebra/cast-same removes the Cast if it
    changes nothing. torch's exporter writes it to give a number the dtype of a tensor.

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
