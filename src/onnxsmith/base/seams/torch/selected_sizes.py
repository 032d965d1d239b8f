"""Answers questions about the number of selected elements as torch does where it is free to choose.

The size of a selection (`x[mask]`, `nonzero`) is unknown while torch traces. A comparison with 0 or 1 in the module
stops the trace. torch's own operators ask the same questions with the answer for two elements or more
("size-oblivious"). Here the module's comparisons get that answer, too.

Compared with torch 2.13 and 2.14. If the name is gone, such a comparison stops the trace.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from onnxsmith.base.seams.base import private, replaced_at

_EVALUATE = "torch.fx.experimental.symbolic_shapes:ShapeEnv._evaluate_expr"
_UNKNOWN = "torch.fx.experimental.symbolic_shapes:GuardOnDataDependentSymNode"
REACHES = (_EVALUATE, _UNKNOWN)


def two_or_more(assumed: Callable[[], None]) -> AbstractContextManager[None]:
    """Inside, a trace goes on where a selection of two elements or more decides a comparison. `assumed` is called at
    each such comparison, inside the line that makes it."""
    evaluate, unknown = private(_EVALUATE), private(_UNKNOWN)

    def evaluated(shapes: Any, comparison: Any, *rest: Any, **more: Any) -> Any:
        try:
            return evaluate(shapes, comparison, *rest, **more)
        except unknown:
            answer = shapes._maybe_evaluate_static(comparison, size_oblivious=True)
            if answer is None:
                raise
            assumed()
            return answer

    return replaced_at(_EVALUATE, evaluated)
