"""`onnxsmith bisect m.onnx -o keep.txt`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.options import argument, flag, option
from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Bisect(Command):
    """Find the nodes that must stay in float32 for the rest to be float16 or bfloat16.

    The list is as short as it gets: without any one of its nodes the outputs are out of tolerance. An example:

        onnxsmith bisect net.onnx -o keep.txt --tolerance 1e-2 --model net-fp16.onnx

    keep.txt then holds one name a line, say `/norm/Pow` and `/norm/ReduceMean`, and net-fp16.onnx computes these two in
    float32 and all else in float16.
    """

    name = "bisect"

    model_file: str = argument("the .onnx file, in float32", metavar="MODEL")
    output: str | None = option("the keep-list to write, .txt or .json", short="-o", metavar="FILE", writes=True)
    to: str = option("the dtype of the other nodes: float16 or bfloat16", default="float16", metavar="DTYPE")
    tolerance: float | None = option(
        "largest difference allowed, relative to scale, instead of what rounding explains", metavar="NUMBER"
    )
    model: str | None = option("write the mixed model to this .onnx", metavar="FILE", writes=True)
    keep: str | None = option("a keep-list whose nodes stay in float32 in any case", metavar="FILE")
    input: tuple[str, ...] = option(
        "inputs to compare on: inputs.npz, x=photo.png; several times; a name that comes again begins the next input",
        default=(),
        metavar="SPEC",
    )
    only_given: bool = flag("compare on the given inputs alone")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension: batch=1; several times", default=(), metavar="NAME=SIZE"
    )
    runtime: str | None = option("where to compare: onnxruntime or reference", metavar="NAME")
    any_runtime: bool = flag("judge by rounding alone, whether or not the runtime has kernels of the dtype")
    tries: int | None = option("variants to try at most; as many as it takes when left out", metavar="COUNT")
    seed: int = option("seed of the generated inputs", default=0)

    def run(self) -> Report:
        from onnxsmith.feeds import given
        from onnxsmith.precision import keep
        from onnxsmith.precision.bisect import bisect

        return bisect(
            self.model_file,
            self.output,
            to=self.to,
            tolerance=self.tolerance,
            keep=keep.read(self.keep) if self.keep is not None else (),
            inputs=self.input,
            sizes=given.sizes(self.dim),
            only_given=self.only_given,
            runtime=self.runtime,
            any_runtime=self.any_runtime,
            model=self.model,
            tries=self.tries,
            seed=self.seed,
        ).report
