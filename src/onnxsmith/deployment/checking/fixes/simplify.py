"""Simplifies the model."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.optimizer.simplification_rounds import simplified


class Simplify(Fix):
    """Constant folding and rules remove nodes that compute shapes, branches that are never taken, and unused nodes."""

    rank = 15

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        made, part = simplified(model)
        if part.fired:
            yield "simplified", made
        made, part = simplified(model, inline_functions=True, max_growth=1.0)
        if part.fired:
            yield "simplified, with larger constants", made
