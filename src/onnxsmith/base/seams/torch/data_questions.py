"""Answers conditions on data in the code of a module while torch traces it.

The truth of `if x.sum() > 0` or `if keep.numel() == 0` is unknown while torch traces, so that the trace stops. Python
asks for the truth of a symbolic condition, or of a tensor, by `SymNode.guard_bool`.

Compared with torch 2.13 and 2.14. If a name is gone, no condition is answered here, and such a condition stops the
trace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

import torch

from onnxsmith.base.seams.base import private, replaced_at

_GUARD = "torch.fx.experimental.sym_node:SymNode.guard_bool"
_UNKNOWN = "torch.fx.experimental.symbolic_shapes:GuardOnDataDependentSymNode"
REACHES = (_GUARD, _UNKNOWN)
_ASKING = frozenset(["guard_bool", "bool_", "__bool__", "__torch_function__", "is_nonzero"])
"""Functions on the call stack between a question and the line that asks it."""


def answering(answer: Callable[[torch.SymBool, FrameType], bool | None]) -> AbstractContextManager[None]:
    """Calls `answer` for each condition that depends on data while the block runs, with the frame of the line that asks
    it. If `answer` returns None, the trace stops, as in torch."""
    guard, unknown = private(_GUARD), private(_UNKNOWN)

    def guarded(node: Any, file: str, line: int) -> bool:
        try:
            found: bool = guard(node, file, line)
        except unknown:
            frame = _asking()
            answered = None if frame is None else answer(_condition(node), frame)
            if answered is None:
                raise
            return answered
        return found

    return replaced_at(_GUARD, guarded)


def _condition(node: Any) -> torch.SymBool:
    made: torch.SymBool = torch.SymBool(node)  # type: ignore[no-untyped-call]
    return made


def _asking() -> FrameType | None:
    """Returns the frame whose line asks for a truth value, in the module or in torch."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (frame.f_code.co_name in _ASKING or _is_seam(frame)):
        frame = frame.f_back
    return frame


def _is_seam(frame: FrameType) -> bool:
    """Whether the frame belongs to a module of this package, which replaces the same function."""
    return str(frame.f_globals.get("__name__")).startswith(__package__)
