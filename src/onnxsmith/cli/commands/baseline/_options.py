"""Options that the commands of `baseline` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument, flag, option
from onnxsmith.cli.commands.base import Command, refuse_missing

if TYPE_CHECKING:
    from onnxsmith.gate.baselines.settings import Settings


@dataclass(frozen=True)
class OfBaseline(Command):
    """The options of every command."""

    models: tuple[str, ...] = argument("the .onnx files", default=(), metavar="MODEL…")
    file: str = option(
        "the baseline file; its data is stored beside it", default="baseline.json", short="-o", metavar="FILE"
    )


@dataclass(frozen=True)
class Measuring(OfBaseline):
    """The options of every command that measures models."""

    no_time: bool = flag("measure no times and no memory")
    seconds: float = option(
        "seconds to measure the time of each model; starting the processes can take up to twelve times as long",
        default=2.0,
    )


@dataclass(frozen=True)
class Recording(Measuring):
    """The options of every command that records models."""

    target: tuple[str, ...] = option(
        "also record the stage that the model reaches on this target: onnxruntime, openvino, …; repeatable",
        default=(),
        metavar="NAME",
    )
    input: tuple[str, ...] = option(
        "inputs to record: inputs.npz, x=photo.png; repeatable; others are generated", default=(), metavar="SPEC"
    )
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension of generated inputs, or a range of sizes: batch=4, batch=1..16; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    tolerance: float | None = option(
        "largest difference that `baseline check` allows, relative to the output's scale; default: estimated from "
        "rounding",
        metavar="NUMBER",
    )
    runtime: str | None = option("runtime that computes the recorded outputs", metavar="NAME")
    seed: int = option("seed of the generated inputs", default=0)

    def refuse(self) -> None:
        if self.runtime:
            refuse_missing(self.runtime)

    def settings(self) -> Settings:
        """Returns the options as the settings of a recording."""
        from onnxsmith.gate.baselines.settings import Settings

        return Settings(
            inputs=self.input,
            sizes=self.dim,
            runtime=self.runtime,
            targets=self.target,
            tolerance=self.tolerance,
            times=not self.no_time,
            seconds=self.seconds,
            seed=self.seed,
        )
