"""`NOT_IMPLEMENTED : Could not find an implementation for Gemm(13)`."""

from __future__ import annotations

import re

from onnxsmith.causes.base import Cause
from onnxsmith.problem import Problem

_TOLD = re.compile(r"(?:Could not find an implementation for|NOT_IMPLEMENTED:?) (\w+)\((\d+)\)")


class NoKernel(Cause):
    """The number is the opset in which the operator last changed; what lacks is a dtype."""

    def read(self, text: str) -> Problem | None:
        found = _TOLD.search(text)
        if not found:
            return None
        return Problem(
            "runtime/no-kernel",
            f"onnxruntime has no kernel for {found[1]} (since opset {found[2]}) with these dtypes",
            why="the operator is known, but not for this dtype on this provider; on the CPU bfloat16 and float8 often lack",
            fix="export the module in float32: net.float(), and floats as inputs",
        )
