"""`… was inferred to be a constant`, and torch's other messages about fixed axes."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(r"inferred to be a constant|specialized|marked as dynamic but|Constraints violated")


class FrozenAxis(Cause):
    """torch suggests to make the axis static; the user needs the line of code that fixed it."""

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text) or "data-dependent" in text:
            return None
        return Problem(
            "export/frozen-axis",
            "an axis that was requested as dynamic is fixed by the model",
            fix="remove that axis from --dynamic, or change the code that takes a Python number from a size",
        )
