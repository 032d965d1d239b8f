"""Defines `opset`, which converts the model to another opset."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure import versions
from onnxsmith.graph.surgery import opset_conversion


@dataclass(frozen=True)
class Opset(Step):
    """Converts the model to opset `to`, up or down, and writes it in IR version `ir_version`. By default this is the
    version that the opset came with, or a later one that the model needs. The outputs keep their numbers."""

    first = ("to",)

    to: int
    ir_version: int | None = None

    def apply(self, work: Work) -> str:
        before, ir_before = opset_conversion.of(work.model), work.model.ir_version
        made = opset_conversion.convert(work.model, self.to)
        least, newest = versions.least_ir(made), versions.newest().ir
        wanted = self.ir_version
        if wanted is None:
            wanted = ir_before if made is work.model else least
        elif not least <= wanted <= newest:
            raise problem(
                "edit/ir-version",
                f"the model cannot be written in IR version {wanted}",
                why=f"opset {self.to} and what the model holds need IR version {least} at least, and the installed "
                f"onnx writes {newest} at most",
                fix=f"choose an IR version from {least} to {newest}, or leave it out",
            )
        if made is not work.model:
            work.rewritten += opset_conversion.rewritten(work.model, made)
            work.become(made)
        work.model.ir_version = wanted
        said = f", IR version {ir_before} → {wanted}" if wanted != ir_before else ""
        return f"opset {before} → {self.to}{said}"
