"""`onnxsmith quantize m.onnx -o q.onnx --to int8`, and `prune` and `bisect`, which measure models as it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command, refuse_missing


def data() -> Any:
    """Makes the option `--data`."""
    return option(
        "data to measure the score on: a folder of images, an .npz, a .jsonl, file.py:function",
        metavar="DATA",
        reads=True,
    )


def samples() -> Any:
    """Makes the option `--samples`."""
    return option("use at most this many test samples; default: all", metavar="COUNT")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Which score is measured."""

    metric: str | None = option(
        "top1, cer, wer, psnr, cosine, agreement, perplexity, map50, or file.py:function of predictions and labels",
        metavar="NAME",
        reads=True,
    )
    decode: str | None = option(
        "file.py:function that makes a prediction from the outputs", metavar="FUNCTION", reads=True
    )
    preprocess: str | None = option(
        "file.py:function that makes arrays from an item of the data", metavar="FUNCTION", reads=True
    )

    def given(self) -> dict[str, Any]:
        """Returns the arguments for the Python function."""
        return {"metric": self.metric, "decode": self.decode, "preprocess": self.preprocess}


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """How inputs are generated, and whether time is measured."""

    no_time: bool = flag("measure no time")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension, or a range of sizes: batch=1, height=64..1024; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    seed: int = option("seed of generated inputs", default=0)

    def given(self) -> dict[str, Any]:
        """Returns the arguments for the Python function."""
        from onnxsmith.verification.inputs import user_inputs as given

        return {"measure_time": not self.no_time, "sizes": given.sizes(self.dim), "seed": self.seed}


def kept(path: str | None) -> tuple[str, ...]:
    """Returns the entries of a keep-list; none without a path."""
    from onnxsmith.precision import keep_list

    return () if path is None else keep_list.read(path)


@dataclass(frozen=True)
class Quantize(Command):
    """Make a model smaller by lower precision, as far as its score on your data allows.

    Keeps as many layers in float32 as the budget requires. Example:

        onnxsmith quantize net.onnx -o small.onnx --to int8 --data photos/ --metric top1 --budget 0.5%

    The score of small.onnx is at most 0.5% below that of net.onnx. It is measured on images of photos/ that calibration
    did not use.
    """

    name = "quantize"
    usual_line = "onnxsmith quantize net.onnx -o small.onnx --to int8 --data photos/ --metric top1 --budget 0.5%"
    usual_options = ("output", "to", "data", "metric", "preprocess", "decode", "budget", "target", "keep", "html")
    examples = (
        ("Half the size, without data", "onnxsmith quantize net.onnx -o half.onnx --to float16"),
        ("Try all methods, and take the best", "onnxsmith quantize net.onnx -o small.onnx --data inputs.npz"),
        (
            "Write a page that shows how the score was measured",
            "onnxsmith quantize net.onnx -o half.onnx --to float16 --html report.html",
        ),
    )

    model: str = argument("the .onnx file, in float32", metavar="MODEL", reads=True)
    output: str | None = option("the .onnx to write", short="-o", metavar="FILE", writes=True)
    to: str = option(
        "float16, bfloat16, float8, int8, int8-dynamic, int8-nncf, int4, int4-nncf or auto",
        default="auto",
        metavar="METHOD",
    )
    data: str | None = data()
    calibration: str | None = option(
        "separate data for calibration; default: every fourth sample of --data",
        metavar="DATA",
        reads=True,
    )
    score: Metric = group(Metric)
    budget: str = option(
        "how much worse the score may become: 0.5% of the score, a number, or a share for each output: y=1%,h=5%",
        default="1%",
        metavar="AMOUNT",
    )
    keep: str | None = option(
        "a file with the names of layers to leave unchanged; * for any characters", metavar="FILE", reads=True
    )
    keep_list: str | None = option("write the names of the unchanged layers to this file", metavar="FILE", writes=True)
    target: str | None = option(
        "the runtime for which int8 or int4 is written: onnxruntime, openvino, …", metavar="NAME"
    )
    range_: tuple[str, ...] = option(
        "values of an integer input, for float16 and bfloat16: input_ids=0..50000; repeatable",
        default=(),
        name="range_",
        metavar="NAME=LOW..HIGH",
    )
    samples: int | None = samples()
    evaluations: int = option("largest number of keep-lists to evaluate for each method", default=20, metavar="COUNT")
    allow_slower: bool = flag("write the file even if it is slower on this machine")
    write_unsure: bool = flag(
        "write the file even if the score cannot distinguish a damaged model from the given model"
    )
    rest: Circumstances = group(Circumstances)

    def refuse(self) -> None:
        refuse_missing("onnxruntime")

    def subjects(self) -> tuple[str, ...]:
        return ()

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
            ranges=self.range_,
            keep=kept(self.keep),
            keep_list=self.keep_list,
            target=self.target,
            samples=self.samples,
            evaluations=self.evaluations,
            allow_slower=self.allow_slower,
            write_unsure=self.write_unsure,
            **self.score.given(),
            **self.rest.given(),
        ).report


@dataclass(frozen=True)
class Prune(Command):
    """Remove channels from a model, so that its tensors become smaller; further training can regain the score.

    A channel is removed together with everything that depends on it. Example:

        onnxsmith prune net.onnx -o small.onnx --share 30% --keep-list kept.json

    small.onnx has 30% fewer channels in each group of layers, and is verified to compute the same as net.onnx without
    these channels. kept.json lists the parts of each weight that remain.
    """

    name = "prune"
    usual_line = "onnxsmith prune net.onnx -o thin.onnx --share 30%"

    model: str = argument("the .onnx file", metavar="MODEL", reads=True)
    output: str | None = option("the .onnx to write", short="-o", metavar="FILE", writes=True)
    share: str | None = option(
        "share of the channels to remove from each group (default: 30%); with --budget, the largest share "
        "to try (default: 90%)",
        metavar="SHARE",
    )
    by: str = option(
        "how to choose the least important channels: norm, activation or first-order", default="norm", metavar="MEASURE"
    )
    saliency: str | None = option(
        "for --by first-order: an .npz with the squares of weight times gradient, one array for each torch parameter",
        metavar="FILE",
        reads=True,
    )
    all_together: bool = flag("remove the share from all groups together, not from each group")
    multiple: int | None = option(
        "keep a multiple of this many channels in each layer; default: 8 in layers with 32 or more", metavar="COUNT"
    )
    keep: str | None = option(
        "layers that keep all channels: a keep-list, with * for any characters in a name", metavar="FILE", reads=True
    )
    data: str | None = data()
    calibration: str | None = option(
        "separate data for --by activation; default: every fourth sample of --data",
        metavar="DATA",
        reads=True,
    )
    score: Metric = group(Metric)
    budget: str | None = option(
        "remove the largest share that costs at most this much of the score: 1%, or a number", metavar="AMOUNT"
    )
    keep_list: str | None = option("write the kept indices of each weight to this .json", metavar="FILE", writes=True)
    samples: int | None = samples()
    evaluations: int = option("largest number of shares to evaluate for a budget", default=12, metavar="COUNT")
    write_unsure: bool = flag(
        "write the file even if the score cannot distinguish a damaged model from the given model, or if "
        "most of the score is lost"
    )
    rest: Circumstances = group(Circumstances)

    def refuse(self) -> None:
        refuse_missing("onnxruntime")

    def subjects(self) -> tuple[str, ...]:
        return ()

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
            write_unsure=self.write_unsure,
            **self.score.given(),
            **self.rest.given(),
        ).report


@dataclass(frozen=True)
class Bisect(Command):
    """Find the nodes that must stay in float32 if all other nodes compute in float16 or bfloat16.

    The list is minimal: if any node is removed from it, the outputs are out of tolerance. Example:

        onnxsmith bisect net.onnx -o keep.txt --tolerance 1e-2 --model net-fp16.onnx

    keep.txt then has one node name per line, for example `/norm/Pow` and `/norm/ReduceMean`. net-fp16.onnx computes
    these two nodes in float32 and all others in float16.
    """

    name = "bisect"
    usual_line = "onnxsmith bisect net.onnx --to float16 -o keep.txt --model mixed.onnx"
    examples = (
        (
            "Allow a larger difference",
            "onnxsmith bisect net.onnx --to float16 -o keep.txt --model mixed.onnx --tolerance 1e-2",
        ),
    )

    model_file: str = argument("the .onnx file, in float32", metavar="MODEL", reads=True)
    output: str | None = option("the keep-list to write, .txt or .json", short="-o", metavar="FILE", writes=True)
    to: str = option("the dtype of the other nodes: float16 or bfloat16", default="float16", metavar="DTYPE")
    tolerance: float | None = option(
        "largest difference allowed, relative to the output's scale; default: estimated from rounding",
        metavar="NUMBER",
    )
    model: str | None = option("write the mixed model to this .onnx", metavar="FILE", writes=True)
    keep: str | None = option(
        "a keep-list whose nodes always stay in float32; * for any characters", metavar="FILE", reads=True
    )
    input: tuple[str, ...] = option(
        "inputs to compare on: inputs.npz, x=photo.png; repeatable; a repeated name starts the next set of inputs",
        default=(),
        metavar="SPEC",
        reads=True,
    )
    only_given: bool = flag("compare only on the given inputs; generate no other inputs")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension, or a range of sizes: batch=1, height=64..1024; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    runtime: str | None = option("runtime to compare on: onnxruntime or reference", metavar="NAME")
    any_runtime: bool = flag("only simulate the rounding; do not run the narrow dtype on the runtime")
    tries: int | None = option("largest number of variants to try; default: no limit", metavar="COUNT")
    seed: int = option("seed of the generated inputs", default=0)

    def subjects(self) -> tuple[str, ...]:
        return ()

    def shown(self) -> tuple[str, ...]:
        return (self.model_file,)

    def run(self) -> Report:
        from onnxsmith.precision import keep_list as keep
        from onnxsmith.precision.bisect import bisect
        from onnxsmith.verification.inputs import user_inputs

        return bisect(
            self.model_file,
            self.output,
            to=self.to,
            tolerance=self.tolerance,
            keep=keep.read(self.keep) if self.keep is not None else (),
            inputs=self.input,
            sizes=user_inputs.sizes(self.dim),
            only_given=self.only_given,
            runtime=self.runtime,
            any_runtime=self.any_runtime,
            model=self.model,
            tries=self.tries,
            seed=self.seed,
        ).report
