"""Computes flex_attention by its formula.

torch keeps a call of flex_attention as one operation of higher order, with the score function as a graph, for a
compiler that writes a kernel. Its own formula gives plain operators. Compared with torch 2.11 to 2.14.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from onnxsmith.base.seams.base import private, replaced_at

_FORMULA = "torch._higher_order_ops.flex_attention:math_attention"
_CALL = "torch._higher_order_ops.flex_attention:FlexAttentionHOP.__call__"
REACHES = (_FORMULA, _CALL)


def by_formula() -> AbstractContextManager[None]:
    """Inside, flex_attention calls the plain operators of its formula."""
    formula = private(_FORMULA)
    if formula is None:
        return nullcontext()

    def call(_: Any, *args: Any, **kwargs: Any) -> Any:
        return formula(*args, **kwargs)

    return replaced_at(_CALL, call)
