"""`onnxsmith check m.onnx --target openvino`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.base.settings import Save, Verify
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Check(Command):
    """Ask targets whether they take a model, and name the nodes that stop them.

    The exit status is 0 if all targets take the model, 1 if one refuses it, gives other numbers, or cannot be judged.
    """

    name = "check"

    model: str = argument("the .onnx file", metavar="MODEL")
    target: tuple[str, ...] = option(
        "targets to ask: onnxruntime, openvino, coreml-mlprogram, profile:FILE.toml, …; repeatable; default: all",
        default=(),
        metavar="NAME",
    )
    fix: bool = flag("rewrite the model until the targets take it, and compare it with the original")
    output: str = option("the file for the rewritten model", short="-o", metavar="FILE", default="", writes=True)
    input: tuple[str, ...] = option(
        "inputs to run and compare on: inputs.npz, x=photo.png; repeatable", default=(), metavar="SPEC"
    )
    verify: Verify = group(Verify)
    save: Save = group(Save)

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.base.problem import problem
        from onnxsmith.deployment.checking.check import check
        from onnxsmith.deployment.checking.target_selection import ALL

        if self.fix and not self.output:
            raise problem("edit/no-output", "no output file was given", fix="add -o fixed.onnx")
        return check(
            self.model,
            self.target or (ALL,),
            self.output or None,
            fix=self.fix,
            inputs=self.input,
            verify=self.verify,
            save=self.save,
        ).report
