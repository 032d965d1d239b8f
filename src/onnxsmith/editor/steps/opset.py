"""Defines `opset`, which converts the model to another opset."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.surgery import opset_conversion


@dataclass(frozen=True)
class Opset(Step):
    """Converts the model to opset `to`, up or down. The outputs keep their numbers."""

    first = ("to",)

    to: int

    def apply(self, work: Work) -> str:
        before = opset_conversion.of(work.model)
        work.become(opset_conversion.convert(work.model, self.to))
        return f"opset {before} → {self.to}"
