"""`NOT_IMPLEMENTED : Could not find an implementation for Gemm(13)`."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(r"(?:Could not find an implementation for|NOT_IMPLEMENTED:?) (\w+)\((\d+)\)")
_TYPE = re.compile(r"Type 'tensor\((\w+)\)' of input parameter \([^)]*\) of operator \((\w+)\).{0,80}is invalid")


class NoKernel(Cause):
    """The number is the opset in which the operator last changed; the dtype is what the runtime lacks."""

    def read(self, text: str) -> Problem | None:
        found = _TOLD.search(text)
        typed = _TYPE.search(text)
        if typed:
            return Problem(
                "runtime/no-kernel",
                f"onnxruntime does not take {typed[1]} for {typed[2]}",
                why="the operator is known, but not for this dtype in this opset; bfloat16 and float8 were added late",
                fix="export the module in float32: net.float(), with float inputs",
            )
        if not found:
            return None
        return Problem(
            "runtime/no-kernel",
            f"onnxruntime has no kernel for {found[1]} (since opset {found[2]}) with these dtypes",
            why="the operator is known, but not for this dtype on this provider; the CPU lacks many bfloat16 kernels",
            fix="export the module in float32: net.float(), with float inputs",
        )
