"""`onnxsmith run model.onnx --input x=photo.png`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Run(Command):
    """Run a model once and show its outputs."""

    name = "run"

    model: str = argument("the .onnx file, or FILE@RUNTIME", metavar="MODEL")
    input: tuple[str, ...] = option(
        "inputs: x=photo.png, x=array.npy, inputs.npz, or x=float32[1,3,8,8] for generated values; repeatable",
        default=(),
        metavar="SPEC",
    )
    output: str | None = option(
        "file for the outputs: .npz for all outputs, or a picture for the first",
        short="-o",
        metavar="FILE",
        writes=True,
    )
    random: bool = flag("generate the inputs that were not given")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension for --random: batch=4; repeatable", default=(), metavar="NAME=SIZE"
    )
    runtime: str | None = option("runtime: onnxruntime, openvino, tract, iree, web or reference", metavar="NAME")
    provider: str = option("execution provider: cpu, cuda or tensorrt; an error if it is missing", default="cpu")
    seed: int = option("seed of the generated inputs", default=0)

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.verification.inputs import user_inputs
        from onnxsmith.verification.run import run

        return run(
            self.model,
            self.input,
            runtime=self.runtime,
            provider=self.provider,
            output=self.output,
            random=self.random,
            sizes=user_inputs.sizes(self.dim),
            seed=self.seed,
        ).report
