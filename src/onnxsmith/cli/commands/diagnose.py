"""`onnxsmith diagnose TARGET`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Diagnose(Command):
    """List everything in a PyTorch model that prevents an export, with the source line and code to paste.

    Reads the source, runs the model, and tries every way to capture it. Writes nothing. The exit status is 1 if a
    problem was found.
    """

    name = "diagnose"

    target: str = argument("file.py:factory or package.module:factory")
    input: tuple[str, ...] = option(
        "example input: x=float32[1,1,224,224], x=array.npy or inputs.npz; repeatable", default=(), metavar="SPEC"
    )
    dynamic: tuple[str, ...] = option(
        'axes to keep dynamic: "x:0=batch,2=height"; repeatable, or separated by ;',
        default=(),
        metavar="AXES",
    )
    opset: int | None = option("the ONNX opset to diagnose for")

    def run(self) -> Report:
        from onnxsmith.exporter.diagnose import diagnose

        return diagnose(self.target, inputs=self.input, dynamic=";".join(self.dynamic), opset=self.opset).report
