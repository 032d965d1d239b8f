"""Hears the questions about the data that the code of a module asks while torch traces it, and answers them.

`if x.sum() > 0`, `if keep.numel() == 0`: the answer is unknown while torch traces, and the trace stops. Python asks for
the truth of a symbolic condition, and for that of a tensor, by `SymNode.guard_bool`.

Compared with torch 2.13 and 2.14. If a name is gone, no question is heard, and such a question stops the trace.
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
"""Functions between a question and the line that asks it."""


def answering(answer: Callable[[torch.SymBool, FrameType], bool | None]) -> AbstractContextManager[None]:
    """Inside, `answer` is asked for each condition whose truth hangs on the data, with the frame of the line that asks
    it. None leaves the question open, as torch does: the trace stops."""
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
    """The frame whose line asks for a truth value; None if an operation of torch does inside."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (frame.f_code.co_name in _ASKING or _is_seam(frame)):
        frame = frame.f_back
    return frame


def _is_seam(frame: FrameType) -> bool:
    """Whether the frame is one of this room: another replacement of the same function."""
    return str(frame.f_globals.get("__name__")).startswith(__package__)
