"""`opset`: converts the model to another opset."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.editing.steps.base import Step
from onnxsmith.editing.work import Work
from onnxsmith.model.surgery import opset


@dataclass(frozen=True)
class Opset(Step):
    """Converts the model to opset `to`, up or down. The outputs keep their numbers."""

    first = ("to",)

    to: int

    def apply(self, work: Work) -> str:
        before = opset.of(work.model)
        work.become(opset.convert(work.model, self.to))
        return f"opset {before} → {self.to}"
