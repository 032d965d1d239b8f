"""`… was inferred to be a constant`, and torch's other words for it."""

from __future__ import annotations

import re

from onnxsmith.causes.base import Cause
from onnxsmith.problem import Problem

_TOLD = re.compile(r"inferred to be a constant|specialized|marked as dynamic but|Constraints violated")


class FrozenAxis(Cause):
    """torch proposes to take the axis out; the line that fixed it is what a user needs."""

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text) or "data-dependent" in text:
            return None
        return Problem(
            "export/frozen-axis",
            "an axis that was asked to be dynamic is fixed by the model",
            fix="take that axis out of --dynamic, or write the model without a Python number taken from a size",
        )
