"""`We found a fake tensor in the exported program constant's list`, and it names `lifted_tensor_0`."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(r"fake tensor in the exported program constant")


class FakeConstant(Cause):
    """A tensor left torch's tracing and came back; torch reports it as an operator that cannot be traced."""

    rank = 45

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text):
            return None
        return Problem(
            "forward/data-attribute",
            "a tensor leaves torch's tracing, by .data for example, and comes back as a constant",
            why="torch calls it lifted_tensor_… and asks for an issue on GitHub; it is the tensor whose .data forward "
            "uses, or that forward keeps outside the module",
            fix="use the tensor itself, or .detach()",
        )
