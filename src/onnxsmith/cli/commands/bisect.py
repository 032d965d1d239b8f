"""`onnxsmith bisect m.onnx -o keep.txt`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Bisect(Command):
    """Find the nodes that must stay in float32 for the rest to be float16 or bfloat16.

    The list is minimal: if any node is removed from it, the outputs are out of tolerance. Example:

        onnxsmith bisect net.onnx -o keep.txt --tolerance 1e-2 --model net-fp16.onnx

    keep.txt then holds one node name per line, for example `/norm/Pow` and `/norm/ReduceMean`. net-fp16.onnx computes
    these two nodes in float32 and all others in float16.
    """

    name = "bisect"

    model_file: str = argument("the .onnx file, in float32", metavar="MODEL")
    output: str | None = option("the keep-list to write, .txt or .json", short="-o", metavar="FILE", writes=True)
    to: str = option("the dtype of the other nodes: float16 or bfloat16", default="float16", metavar="DTYPE")
    tolerance: float | None = option(
        "largest difference allowed, relative to the output's scale; default: estimated from rounding",
        metavar="NUMBER",
    )
    model: str | None = option("write the mixed model to this .onnx", metavar="FILE", writes=True)
    keep: str | None = option("a keep-list whose nodes always stay in float32; * for any characters", metavar="FILE")
    input: tuple[str, ...] = option(
        "inputs to compare on: inputs.npz, x=photo.png; repeatable; a repeated name starts the next set of inputs",
        default=(),
        metavar="SPEC",
    )
    only_given: bool = flag("compare on the given inputs only; generate none")
    dim: tuple[str, ...] = option("size of a symbolic dimension: batch=1; repeatable", default=(), metavar="NAME=SIZE")
    runtime: str | None = option("runtime to compare on: onnxruntime or reference", metavar="NAME")
    any_runtime: bool = flag("judge by rounding only, even if the runtime has no kernels of the dtype")
    tries: int | None = option("largest number of variants to try; default: no limit", metavar="COUNT")
    seed: int = option("seed of the generated inputs", default=0)

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
