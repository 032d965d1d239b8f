"""`onnxsmith reduce m.onnx -o folder --check "refuses onnxruntime"`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.options import argument, flag, option
from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Reduce(Command):
    """Make a failing model small, so that it can be handed on.

    The result fails the same check in the same way. It is written into a folder with its inputs and a program that
    shows the failure, which is run before the folder is put in place.
    """

    name = "reduce"

    model: str = argument("the .onnx file", metavar="MODEL")
    output: str = option("the folder to write", short="-o", metavar="FOLDER", default="", writes=True)
    check: str | None = option(
        '"differs RUNTIME RUNTIME", "refuses RUNTIME", "crashes RUNTIME" or "slow RUNTIME SECONDS"', metavar="CHECK"
    )
    command: str | None = option(
        'a command whose exit status says that the model fails: "python check.py {model} {inputs}"', metavar="COMMAND"
    )
    status: int | None = option("the exit status of the command that means it fails; any but 0 when left out")
    input: tuple[str, ...] = option(
        "an input on which it fails: inputs.npz, x=array.npy, x=photo.png; several times", default=(), metavar="SPEC"
    )
    dim: tuple[str, ...] = option("size of a symbolic dimension: batch=1", default=(), metavar="NAME=SIZE")
    anonymise: bool = flag("make names and weights up, and drop descriptions, as far as it still fails")
    time_limit: float | None = option("seconds for one try, which is then stopped; 60 when left out", metavar="SECONDS")
    seed: int = option("seed of the generated inputs", default=0)

    def run(self) -> Report:
        from onnxsmith.feeds import given
        from onnxsmith.problem import problem
        from onnxsmith.reduction.reduce import reduce

        if not self.output:
            raise problem("reduce/no-output", "no folder to write was named", fix="add -o reduced")
        if (self.check is None) == (self.command is None):
            raise problem(
                "reduce/unknown-check",
                "no check was named" if self.check is None else "a check and a command were named",
                fix='give one: --check "refuses onnxruntime", or --command "python check.py {model}"',
            )
        return reduce(
            self.model,
            self.output,
            check=self.check if self.check is not None else f"command {self.command}",
            inputs=self.input or None,
            sizes=given.sizes(self.dim),
            status=self.status,
            anonymise=self.anonymise,
            time_limit=self.time_limit,
            seed=self.seed,
        ).report
