"""`onnxsmith split MODEL --into N -o FOLDER`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.base.settings import Save, Verify
from onnxsmith.cli.commands._edit_options import selectors
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Split(Command):
    """Divide a model into pieces that run by themselves, and verify that together they are the model."""

    name = "split"

    model: str = argument("the .onnx file", metavar="MODEL")
    output: str = option("the folder to write", short="-o", metavar="FOLDER", default="")
    into: int = option("the number of pieces, with about the same bytes of weights", default=0, metavar="N")
    at: tuple[str, ...] = option(
        "a tensor that ends a piece, or a table: '{ producer = \"relu\" }'; repeatable", default=(), metavar="TENSOR"
    )
    nodes: bool = flag("make a piece of each node")
    by_nodes: bool = flag("with --into: about the same number of nodes instead")
    no_verify: bool = flag("write the files without verifying them; the report says so")
    verify: Verify = group(Verify)
    save: Save = group(Save)

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.base.problem import problem
        from onnxsmith.editor.split import split

        if not self.output:
            raise problem("edit/no-output", "no output folder was given", fix="add -o pieces")
        return split(
            self.model,
            self.output,
            into=self.into or None,
            at=selectors(self.at),
            nodes=self.nodes,
            by_nodes=self.by_nodes,
            verify=self.verify if not self.no_verify else False,
            save=self.save,
        ).report
