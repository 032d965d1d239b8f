"""`got 18 not 12`, `No Previous Version of LayerNormalization exists`, a C++ trace of onnx's version converter."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(
    r"No Previous Version of (\w+)|no_previous_version|No Adapter (?:From|To) Version \$?\d+ for (\w+)"
    r"|version_converter|The model version conversion is not supported|[Ff]ailed to convert the model to the target"
)


class DownConverter(Cause):
    """torch's exporter writes opset 18 or newer, then converts; onnx's converter lacks many steps to older opsets."""

    def read(self, text: str) -> Problem | None:
        found = _TOLD.search(text)
        if not found:
            return None
        operator = found[1] or found[2] or ""
        return Problem(
            "export/opset",
            f"{operator or 'an operator of the model'} cannot be converted to the requested opset",
            why="torch's exporter writes opset 18 or newer, and the converter after it has no step to an older opset "
            f"for {operator or 'it'}; torch alone logs this and writes opset 18",
            fix="leave out --opset, or ask for 18 or newer",
        )
