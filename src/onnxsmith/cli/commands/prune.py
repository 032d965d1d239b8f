"""`onnxsmith prune m.onnx -o p.onnx --share 30%`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands._score_options import Circumstances, Metric, data, kept, samples
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Prune(Command):
    """Remove channels from a model, so that its tensors become smaller; train the result on to regain its score.

    A channel goes with all that depends on it. Example:

        onnxsmith prune net.onnx -o small.onnx --share 30% --keep-list kept.json

    small.onnx has 30% fewer channels in each group of layers, and is proven to compute what net.onnx computes without
    these channels. kept.json says which part of each weight stayed.
    """

    name = "prune"

    model: str = argument("the .onnx file", metavar="MODEL")
    output: str | None = option("the .onnx to write", short="-o", metavar="FILE", writes=True)
    share: str | None = option(
        "share of each group's channels to remove; default: 30%, with --budget at most 90%", metavar="SHARE"
    )
    by: str = option(
        "how to find the channels that matter least: norm, activation or first-order", default="norm", metavar="MEASURE"
    )
    saliency: str | None = option(
        "for --by first-order: an .npz with the squares of weight times gradient by torch parameter", metavar="FILE"
    )
    all_together: bool = flag("take the share of the channels of all groups together, not of each group")
    multiple: int | None = option(
        "keep a multiple of this many channels in each layer; default: 8 in layers with 32 or more", metavar="COUNT"
    )
    keep: str | None = option(
        "layers that keep all channels: a keep-list, with * for any characters in a name", metavar="FILE"
    )
    data: str | None = data()
    calibration: str | None = option(
        "other data, for --by activation; default: each fourth sample of --data", metavar="DATA"
    )
    score: Metric = group(Metric)
    budget: str | None = option(
        "remove the largest share that makes the score no worse than this: 1% of it, or a number", metavar="AMOUNT"
    )
    keep_list: str | None = option("write the indices kept of each weight to this .json", metavar="FILE", writes=True)
    samples: int | None = samples()
    evaluations: int = option("largest number of shares to evaluate for a budget", default=12, metavar="COUNT")
    rest: Circumstances = group(Circumstances)

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.precision.pruning.prune import prune

        return prune(
            self.model,
            self.output,
            share=self.share,
            by=self.by,
            saliency=self.saliency,
            all_together=self.all_together,
            multiple=self.multiple,
            keep=kept(self.keep),
            data=self.data,
            calibration=self.calibration,
            budget=self.budget,
            keep_list=self.keep_list,
            samples=self.samples,
            evaluations=self.evaluations,
            **self.score.given(),
            **self.rest.given(),
        ).report
