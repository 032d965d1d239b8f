"""`Could not guard on data-dependent expression Eq(u0, 1)`."""

from __future__ import annotations

import re

from onnxsmith.causes._text import code_in
from onnxsmith.causes.base import Cause
from onnxsmith.problem import Problem

_TOLD = re.compile(
    r"Could not guard on data-dependent|Could not extract specialized integer from data-dependent"
    r"|DataDependentOutputException|aten\._local_scalar_dense|data-dependent"
)
_LOOP = re.compile(r"(while|for)\b")
_VALUE = re.compile(r"\.item\(\)|\.tolist\(\)|\b(int|float)\(")


class DataBranch(Cause):
    """torch calls a number that it cannot know u0, u1, …: a value that Python took from a tensor. `Eq(u0, 1)` is the
    truth of a tensor that an `if` asks for. Nothing in the message says so."""

    rank = 40

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text):
            return None
        code = code_in(text)
        if _LOOP.match(code):
            return Problem(
                "forward/loop-on-data",
                "a loop turns as often as the value of a tensor says",
                why="what torch calls u0 in its message is a number that Python took from a tensor; "
                "how often the loop turns is not known before the model runs",
                fix="use torch.while_loop, or a Python number of turns that is the same in every call",
            )
        if _VALUE.search(code) and not code.startswith(("if", "elif", "assert")):
            return Problem(
                "forward/python-value",
                "Python takes a number from a tensor",
                why="what torch calls u0 in its message is that number: it is not known before the model runs",
                fix="leave out .item(), int() and float(): tensors of rank 0 can be computed with as they are",
            )
        return Problem(
            "forward/branch-on-data",
            "an `if` asks for the value of a tensor",
            why="what torch calls u0 in its message is that value; Eq(u0, 1) is the question whether it is true, "
            "which is not known before the model runs",
            fix="write the choice with torch.where(condition, a, b), or with torch.cond for two branches",
        )
