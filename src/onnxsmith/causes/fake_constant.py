"""`We found a fake tensor in the exported program constant's list`, and it names `lifted_tensor_0`."""

from __future__ import annotations

import re

from onnxsmith.causes.base import Cause
from onnxsmith.problem import Problem

_TOLD = re.compile(r"fake tensor in the exported program constant")


class FakeConstant(Cause):
    """A tensor that left what torch follows came back; torch takes it for an operator that cannot be traced."""

    rank = 45

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text):
            return None
        return Problem(
            "forward/data-attribute",
            "a tensor leaves what torch follows, by .data for example, and comes back as a constant",
            why="torch calls it lifted_tensor_… and asks for an issue on GitHub; it is the tensor that forward takes "
            ".data of, or keeps outside of the module",
            fix="use the tensor itself, or .detach()",
        )
