"""`onnxsmith dump model.onnx -o values.safetensors`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Dump(Command):
    """Write the values of a model's tensors on one input.

    Without --output, show their statistics and write nothing.
    """

    name = "dump"

    model: str = argument("the .onnx file; m.onnx@reference runs it on that runtime", metavar="MODEL")
    output: str | None = option("file to write: .safetensors or .npz", short="-o", metavar="FILE", writes=True)
    tensor: tuple[str, ...] = option(
        "a tensor, or a pattern such as '*attention*'; repeatable; default: all tensors", default=(), metavar="NAME"
    )
    input: tuple[str, ...] = option(
        "inputs: x=photo.png, inputs.npz; repeatable; inputs not given are generated", default=(), metavar="SPEC"
    )
    dim: tuple[str, ...] = option("size of a symbolic dimension: batch=4; repeatable", default=(), metavar="NAME=SIZE")
    statistics: bool = flag("also show the statistics of the written tensors")
    runtime: str | None = option("runtime: onnxruntime, openvino, tract, iree, web or reference", metavar="NAME")
    seed: int = option("seed of the generated inputs", default=0)
    memory: int = option("megabytes of tensor values in memory at once", default=1024, metavar="MB")

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.verification.by_layer.dump import dump
        from onnxsmith.verification.inputs import user_inputs

        return dump(
            self.model,
            self.output,
            tensors=self.tensor,
            inputs=self.input,
            runtime=self.runtime,
            sizes=user_inputs.sizes(self.dim),
            seed=self.seed,
            statistics=self.statistics,
            budget=self.memory * 10**6,
        ).report
