"""Makes flex_attention compute by its formula.

torch keeps a call of flex_attention as one higher-order operator, whose score function is a graph: input for a compiler
that writes a kernel. The formula in torch's own code gives plain operators. Compared with torch 2.11 to 2.14.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from onnxsmith.base.seams.base import private, replaced_at

_FORMULA = "torch._higher_order_ops.flex_attention:math_attention"
_CALL = "torch._higher_order_ops.flex_attention:FlexAttentionHOP.__call__"
REACHES = (_FORMULA, _CALL)


def by_formula() -> AbstractContextManager[None]:
    """Makes flex_attention call the plain operators of its formula while the block runs."""
    formula = private(_FORMULA)
    if formula is None:
        return nullcontext()

    def call(_: Any, *args: Any, **kwargs: Any) -> Any:
        return formula(*args, **kwargs)

    return replaced_at(_CALL, call)
