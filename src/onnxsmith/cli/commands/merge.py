"""`onnxsmith merge FIRST SECOND -o FILE`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.base.settings import Save, Verify
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Merge(Command):
    """Join two models, and compare each with its part of the whole."""

    name = "merge"

    first: str = argument("the .onnx file whose outputs are read", metavar="FIRST")
    second: str = argument("the .onnx file that reads them", metavar="SECOND")
    output: str = option("the file to write", short="-o", metavar="FILE", default="", writes=True)
    wire: tuple[str, ...] = option(
        "OUTPUT=INPUT: this input of the second reads this output of the first; repeatable; "
        "default: equal names, else the only output and the only input",
        default=(),
        metavar="WIRE",
    )
    siblings: bool = flag(
        "put the models side by side, no outputs joined to inputs; inputs of the same name become one"
    )
    keep: bool = flag("keep the outputs of the first that the second reads")
    first_prefix: str = option("put this text before the names of the first model", default="", metavar="TEXT")
    second_prefix: str = option("put this text before the names of the second model", default="", metavar="TEXT")
    no_verify: bool = flag("write the file without verifying it; the report says so")
    verify: Verify = group(Verify)
    save: Save = group(Save)

    def shown(self) -> tuple[str, ...]:
        return (self.output,)

    def run(self) -> Report:
        from onnxsmith.base.problem import problem
        from onnxsmith.editor.merge import merge

        if not self.output:
            raise problem("edit/no-output", "no output file was given", fix="add -o merged.onnx")
        if self.wire and self.siblings:
            raise problem("merge/no-joint", "--siblings joins no tensors, but --wire does", fix="leave one of them out")
        wires = {}
        for text in self.wire:
            source, equals, port = text.partition("=")
            if not (source and equals and port):
                raise problem("merge/no-port", f"{text!r} is no wire", fix="write OUTPUT=INPUT: --wire features=x")
            wires[source] = port
        return merge(
            self.first,
            self.second,
            self.output,
            wires=wires if wires or self.siblings else None,
            keep=self.keep,
            prefixes=(self.first_prefix, self.second_prefix),
            verify=self.verify if not self.no_verify else False,
            save=self.save,
        ).report
