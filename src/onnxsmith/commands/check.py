"""`onnxsmith check m.onnx --target openvino`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.options import argument, option
from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Check(Command):
    """Ask targets whether they take a model, and name the nodes that stop them.

    The exit status is 0 if all targets take the model, 1 if one refuses it, gives other numbers, or cannot be judged.
    """

    name = "check"

    model: str = argument("the .onnx file", metavar="MODEL")
    target: tuple[str, ...] = option(
        "who is asked: onnxruntime, openvino, tensorrt-rtx, …; repeatable; default: all that are installed",
        default=(),
        metavar="NAME",
    )
    input: tuple[str, ...] = option(
        "inputs to run and compare on: inputs.npz, x=photo.png; repeatable", default=(), metavar="SPEC"
    )
    dim: tuple[str, ...] = option("size of a symbolic dimension: batch=1; repeatable", default=(), metavar="NAME=SIZE")
    seed: int = option("seed of the generated inputs", default=0)

    def run(self) -> Report:
        from onnxsmith.checking.check import ALL, check
        from onnxsmith.feeds import given

        return check(
            self.model,
            self.target or (ALL,),
            inputs=self.input,
            sizes=given.sizes(self.dim),
            seed=self.seed,
        ).report
