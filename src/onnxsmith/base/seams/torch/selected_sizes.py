"""Answers comparisons of the number of selected elements during a trace as if two or more were selected.

The size of a selection (`x[mask]`, `nonzero`) is unknown while torch traces, so that a comparison of it with 0 or 1 in
the module stops the trace. The operators of torch itself assume two elements or more in such comparisons
("size-oblivious"). Here the comparisons in the module get the same answer.

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
    """Answers comparisons of the size of a selection as for two elements or more, so that the trace goes on. Calls
    `assumed` at each such comparison, from inside the line that makes it."""
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
