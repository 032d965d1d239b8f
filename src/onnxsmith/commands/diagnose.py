"""`onnxsmith diagnose TARGET`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.options import argument, option
from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Diagnose(Command):
    """Name everything in a PyTorch model that stands in the way of an export, with its line and code to paste.

    The source is read, the model is run and traced in every way, and nothing is written. The exit status is 1 when
    something was found that an export would stumble over.
    """

    name = "diagnose"

    target: str = argument("file.py:factory or package.module:factory")
    input: tuple[str, ...] = option(
        "example input: x=float32[1,1,224,224], x=array.npy or inputs.npz; several times", default=(), metavar="SPEC"
    )
    dynamic: tuple[str, ...] = option(
        'axes that are to stay dynamic: "x:0=batch,2=height"; several times, or separated by ;',
        default=(),
        metavar="AXES",
    )
    opset: int | None = option("the ONNX opset that an export would be asked for")

    def run(self) -> Report:
        from onnxsmith.exporter.diagnose import diagnose

        return diagnose(self.target, inputs=self.input, dynamic=";".join(self.dynamic), opset=self.opset).report
