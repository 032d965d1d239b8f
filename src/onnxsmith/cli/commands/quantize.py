"""`onnxsmith quantize m.onnx -o q.onnx --to int8`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands._score_options import Circumstances, Metric, data, kept, samples
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Quantize(Command):
    """Make a model smaller by a narrower precision, as far as a score on your data allows.

    Layers stay in float32 until the budget is met. Example:

        onnxsmith quantize net.onnx -o small.onnx --to int8 --data photos/ --metric top1 --budget 0.5%

    small.onnx has the score of net.onnx less half a percent at worst, measured on the images of photos/ that
    calibration did not see.
    """

    name = "quantize"

    model: str = argument("the .onnx file, in float32", metavar="MODEL")
    output: str | None = option("the .onnx to write", short="-o", metavar="FILE", writes=True)
    to: str = option(
        "float16, bfloat16, int8, int8-dynamic, int8-nncf, int4, int4-nncf or auto", default="auto", metavar="METHOD"
    )
    data: str | None = data()
    calibration: str | None = option(
        "other data, for the ranges of activations; default: each fourth sample of --data", metavar="DATA"
    )
    score: Metric = group(Metric)
    budget: str = option("how much worse the score may become: 0.5% of it, or a number", default="1%", metavar="AMOUNT")
    keep: str | None = option(
        "a file with the names of layers that stay as they are; * for any characters", metavar="FILE"
    )
    keep_list: str | None = option("write the layers that stay to this file", metavar="FILE", writes=True)
    target: str | None = option(
        "the runtime for which int8 or int4 is written: onnxruntime, openvino, …", metavar="NAME"
    )
    samples: int | None = samples()
    evaluations: int = option("largest number of keep-lists to evaluate for each method", default=20, metavar="COUNT")
    allow_slower: bool = flag("write the file even if it is slower here")
    rest: Circumstances = group(Circumstances)

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.precision.quantize import quantize

        return quantize(
            self.model,
            self.output,
            to=self.to,
            data=self.data,
            calibration=self.calibration,
            budget=self.budget,
            keep=kept(self.keep),
            keep_list=self.keep_list,
            target=self.target,
            samples=self.samples,
            evaluations=self.evaluations,
            allow_slower=self.allow_slower,
            **self.score.given(),
            **self.rest.given(),
        ).report
