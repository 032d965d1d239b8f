"""`Could not guard on data-dependent expression Eq(u0, 1)`."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes._message_text import code_in
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(
    r"Could not guard on data-dependent|Could not extract specialized integer from data-dependent"
    r"|DataDependentOutputException|aten\._local_scalar_dense|data-dependent"
)
_LOOP = re.compile(r"(while|for)\b")
_VALUE = re.compile(r"\.item\(\)|\.tolist\(\)|\b(int|float)\(")


class DataBranch(Cause):
    """torch gives the names u0, u1, … to numbers that Python took from a tensor, which are unknown while it traces.
    `Eq(u0, 1)` is the truth of a tensor that an `if` tests. The message says none of this."""

    rank = 40

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text):
            return None
        code = code_in(text)
        if _LOOP.match(code):
            return Problem(
                "forward/loop-on-data",
                "the number of iterations of a loop depends on the value of a tensor",
                why="u0 in torch's message is a number that Python took from a tensor; the number of iterations is "
                "unknown before the model runs",
                fix="use torch.while_loop, or a number of iterations that is the same in every call",
            )
        if _VALUE.search(code) and not code.startswith(("if", "elif", "assert")):
            return Problem(
                "forward/python-value",
                "Python takes a number from a tensor",
                why="u0 in torch's message is that number: it is unknown before the model runs",
                fix="leave out .item(), int() and float(): a tensor of rank 0 can be used in computations directly",
            )
        return Problem(
            "forward/branch-on-data",
            "an `if` tests the value of a tensor",
            why="u0 in torch's message is that value, and Eq(u0, 1) asks whether it is true; it is unknown before the "
            "model runs",
            fix="write the choice with torch.where(condition, a, b), or with torch.cond for two branches",
        )
