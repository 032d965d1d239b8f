"""Reports the conditions on sizes that the code of a module evaluates while torch traces it.

Python evaluates a symbolic condition by `SymBool.__bool__`, in `if`, `while`, `and`, `max` and wherever it needs a
truth value. torch answers for the example's sizes, and stores the answer as a guard.

`is_known` and `example` add no guard.

Compared with torch 2.13 and 2.14. If a name is gone, no condition is reported, and `is_known` is always False.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import Any

import sympy
import torch

from onnxsmith.base.seams.base import private, replaced
from onnxsmith.base.seams.torch.tensors import check

_HINT = "torch.fx.experimental.sym_node:SymNode.hint"
_KNOWN = "torch.fx.experimental.symbolic_shapes:statically_known_true"
REACHES = ("torch:SymBool.__bool__", "torch.fx.experimental.sym_node:SymNode.expr", _HINT, _KNOWN)
_UNKNOWN = "GuardOnDataDependentSymNode"
"""The error of a condition that depends on data."""
_COMPARES = "check_same_shape"
"""The function of torch that compares the shapes of the operands of one operator, after they were broadcast."""
_PACKAGE = str(Path(torch.__file__).parent)
_HOME = torch.__file__


def hearing(asked: Callable[[Any, FrameType], None]) -> AbstractContextManager[None]:
    """Calls `asked` with each condition that the example's sizes decide: as the sympy expression that holds for them,
    and with the frame that evaluates it. Not called for conditions that hold for all sizes or for none."""
    answer: Callable[[torch.SymBool], bool] = torch.SymBool.__bool__

    def answered(condition: torch.SymBool) -> bool:
        node: Any = condition.node
        expression, guards = getattr(node, "expr", None), getattr(getattr(node, "shape_env", None), "guards", ())
        before = len(guards)
        try:
            found = answer(condition)
        except RuntimeError as error:
            assumed = _assumed(expression, sys._getframe(1)) if type(error).__name__ == _UNKNOWN else None
            if assumed is None:
                raise
            if assumed and sys._getframe(1).f_code.co_name == _COMPARES:
                check(condition)  # the trace goes on with equal shapes
            return assumed
        known = [guard.expr for guard in guards]
        holds = expression if found else ~expression if expression is not None else None
        # A condition that was asked before adds no guard: its guard is there already.
        if holds is not None and (len(known) > before or holds in known):
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename == _HOME:  # `SymInt.__bool__` asks another condition
                frame = frame.f_back
            if frame is not None:
                asked(holds, frame)
        return found

    return replaced(torch.SymBool, "__bool__", answered)


def _assumed(condition: Any, frame: FrameType) -> bool | None:
    """Returns the assumed answer to a condition that depends on data, if torch's own code asks it and can go on: no
    axis has size 0 or 1, and operands that were broadcast have the same shape. None for all other conditions."""
    if not frame.f_code.co_filename.startswith(_PACKAGE):
        return None
    if frame.f_code.co_name == _COMPARES:
        return True
    is_on_length = isinstance(condition, sympy.core.relational.Relational) and condition.rhs in (0, 1)
    return isinstance(condition, sympy.Ne | sympy.Ge | sympy.Gt) if is_on_length else None


def is_known(condition: bool | torch.SymBool) -> bool:
    """Whether torch can tell that a condition holds for all sizes. Adds no guard."""
    known: Callable[[Any], bool] | None = private(_KNOWN)
    return bool(known(condition)) if known is not None else False


def example(size: int | torch.SymInt) -> int | torch.SymInt:
    """Returns the size in the example; a size that depends on data is returned unchanged."""
    known: Any = getattr(getattr(size, "node", None), "hint", None)
    return known if isinstance(known, int) else size
