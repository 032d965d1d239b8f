"""Replaces the calls of local functions by their bodies."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.surgery.inlining import inlined


class InlineFunctions(Fix):
    """Some targets do not know local functions, or only those without attributes."""

    rank = 10

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        if model.functions:
            made, reason = inlined(model)
            if not reason:
                yield "local functions are replaced by their bodies", made
