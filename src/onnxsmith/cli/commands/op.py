"""`onnxsmith op NAME`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Op(Command):
    """Show an operator: operands, attributes, what changed at each opset, onnxruntime's CPU kernels, an example that
    runs."""

    name = "op"

    operator: str = argument("the operator: Resize, or ai.onnx.ml::TreeEnsemble", metavar="NAME")
    opset: int | None = option("show the form of this opset; default: the newest")

    def run(self) -> Report:
        from onnxsmith.editor.building.operator_page import operator_page

        return operator_page(self.operator, opset=self.opset)
