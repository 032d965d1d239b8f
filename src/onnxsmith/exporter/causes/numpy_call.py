"""`.numpy() is not supported for tensor subclasses`, and torch's other messages about numpy inside a trace."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(
    r"numpy\(\) is not supported for tensor subclasses|Can't call numpy\(\)|Converting a tensor to a NumPy array"
    r"|Cannot convert (?:a )?\w*\s*(?:tensor|FakeTensor) to (?:a )?numpy|__array__"
)


class NumpyCall(Cause):
    """Inside a trace, tensors have no values for numpy."""

    rank = 35

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text):
            return None
        return Problem(
            "forward/numpy",
            "forward computes with numpy",
            why="while torch traces, tensors have no values, so numpy has nothing to compute with; in a trace by "
            "example its result would be a constant",
            fix="use torch's function of the same name",
        )
