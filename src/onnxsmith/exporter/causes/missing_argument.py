"""`missing a required argument: 'x'`."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(
    r"missing a required (?:keyword-only )?argument: '(\w+)'|forward\(\) missing \d+ required .*?'(\w+)'"
)


class MissingArgument(Cause):
    """torch.onnx.export treats a dictionary at the end of the arguments as keyword arguments."""

    def read(self, text: str) -> Problem | None:
        found = _TOLD.search(text)
        if not found:
            return None
        name = found[1] or found[2]
        return Problem(
            "export/missing-argument",
            f"forward did not get its argument {name!r}",
            why="it was not given; or it is a dictionary at the end of the arguments, which torch.onnx.export treats "
            "as keyword arguments",
            fix=f"give it by name: kwargs={{{name!r}: …}}; onnxsmith.export passes a last dictionary as an argument",
        )
