"""A `Cast` after a lossless `Cast`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.rules._patterns import integer, maker
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule

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
"""Bits of precision and of the exponent (IEEE 754)."""


class CastChain(Rule):
    """Cast(Cast(x, wide), t) is Cast(x, t) where `wide` holds every value of x's dtype: int32 to int64, float16 to
    float, bool to anything. float to bfloat16 and back is not such a pair. Other readers of the intermediate value
    stay.

    Refused:
    1. The first Cast rounds, wraps or overflows some values.
    2. The second goes from floating point to integers that do not hold all of x's values: what NaN and values out of
       range become is up to the runtime, and may differ by the dtype it starts from.
    3. The second goes to 16-bit floating point and x is an integer: runtimes get there through float.

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

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        first = maker(node.inputs[0], node, "Cast")
        source = first.inputs[0] if first is not None else None
        if first is None or source is None or source.dtype is None:
            return None
        middle, to = (integer(one, "to", 0) for one in (first, node))
        known = {*_INTEGERS, *_FLOATS}
        if source.dtype not in known or middle not in known or to not in known:
            return None
        a, b, c = source.dtype, _T(middle), _T(to)
        if not _holds(b, a):
            return NoMatch(f"not every {a.name} is a {b.name}", first.name or "")
        if b in _FLOATS and c in _INTEGERS and c is not _T.BOOL and not _holds(c, a):
            return NoMatch(f"not every {a.name} is a {c.name}, and what else becomes is not defined", node.name or "")
        if a in _INTEGERS and c in (_T.FLOAT16, _T.BFLOAT16) and not _holds(c, a):
            return NoMatch(f"{a.name} to {c.name} may round twice", node.name or "")
        return Match(node, (node, first), {"source": source})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return tape.op("Cast", [match.found["source"]], dict(match.node.attributes))


def _holds(wide: ir.DataType, narrow: ir.DataType) -> bool:
    """Whether each value of `narrow` is one of `wide`."""
    if wide is narrow:
        return True
    if narrow in _FLOATS:
        return wide in _FLOATS and all(a >= b for a, b in zip(_FLOATS[wide], _FLOATS[narrow], strict=True))
    low, high = _INTEGERS[narrow]
    if wide in _FLOATS:
        return bool(max(-low, high) <= 2 ** _FLOATS[wide][0])
    return wide is not _T.BOOL and _INTEGERS[wide][0] <= low and high <= _INTEGERS[wide][1]
