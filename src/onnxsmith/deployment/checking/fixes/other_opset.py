"""Converts the model to another opset."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.structure.versions import newest
from onnxsmith.graph.surgery import opset_conversion

_USUAL = (20, 18, 17, 16, 13, 12, 21, 22, 23, 24, 25)
"""Opsets in the order of trial: first lower opsets, which older converters read, then higher opsets, which have newer
operators. Opsets 18 and 13 changed many operators: axes became inputs."""


class OtherOpset(Fix):
    """A target may know an operator only in an older form, or only in a newer one."""

    rank = 30

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        now = opset_conversion.of(model)
        for version in _USUAL:
            if version == now or version > newest().opset:
                continue
            try:
                yield f"written in opset {version}", opset_conversion.convert(model, version)
            except OnnxsmithError:
                continue
