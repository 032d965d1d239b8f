"""`onnxsmith reduce m.onnx -o folder --check "refuses onnxruntime"`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Reduce(Command):
    """Make a failing model as small as possible, for a bug report.

    The small model fails the same check in the same way. The folder holds the model, its inputs, and a program that
    reproduces the failure. The program is run once before the folder is written.
    """

    name = "reduce"

    model: str = argument("the .onnx file", metavar="MODEL")
    output: str = option("the folder to write", short="-o", metavar="FOLDER", default="", writes=True)
    check: str | None = option(
        '"differs RUNTIME RUNTIME", "refuses RUNTIME", "crashes RUNTIME" or "slow RUNTIME SECONDS"', metavar="CHECK"
    )
    command: str | None = option(
        'a command that exits with an error if the model fails: "python check.py {model} {inputs}"', metavar="COMMAND"
    )
    status: int | None = option("the command's exit status for a failing model; default: any but 0")
    input: tuple[str, ...] = option(
        "an input on which the model fails: inputs.npz, x=array.npy, x=photo.png; repeatable",
        default=(),
        metavar="SPEC",
    )
    dim: tuple[str, ...] = option("size of a symbolic dimension: batch=1; repeatable", default=(), metavar="NAME=SIZE")
    anonymise: bool = flag("replace names and weights and drop descriptions, as far as the model still fails")
    time_limit: float | None = option("time limit of each try, in seconds; default: 60", metavar="SECONDS")
    seed: int = option("seed of the generated inputs", default=0)

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.base.problem import problem
        from onnxsmith.comparison.reduction.reduce import reduce
        from onnxsmith.verification.inputs import user_inputs

        if not self.output:
            raise problem("reduce/no-output", "no output folder was given", fix="add -o reduced")
        if (self.check is None) == (self.command is None):
            raise problem(
                "reduce/unknown-check",
                "no check was given" if self.check is None else "both a check and a command were given",
                fix='give exactly one: --check "refuses onnxruntime", or --command "python check.py {model}"',
            )
        return reduce(
            self.model,
            self.output,
            check=self.check if self.check is not None else f"command {self.command}",
            inputs=self.input or None,
            sizes=user_inputs.sizes(self.dim),
            status=self.status,
            anonymise=self.anonymise,
            time_limit=self.time_limit,
            seed=self.seed,
        ).report
