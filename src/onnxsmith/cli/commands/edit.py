"""`onnxsmith edit MODEL PATCH -o FILE`, `onnxsmith merge FIRST SECOND -o FILE`, `onnxsmith split MODEL -o FOLDER`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Save, Verify
from onnxsmith.cli.commands._edit_options import Editing, selectors
from onnxsmith.cli.commands.base import Command

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Edit(Editing):
    """Apply the steps of a patch file to a model: all steps or none.

    Runs the edited model, and compares every result that no step changes on purpose with the original model. Writes the
    file if these results are equal. Without arguments, lists the possible steps.
    """

    name = "edit"
    usual_line = "onnxsmith edit net.onnx patch.toml -o edited.onnx"
    examples = (
        (
            "Write a page that shows which nodes the patch changes",
            "onnxsmith edit net.onnx patch.toml -o edited.onnx --view edited.html --html report.html",
        ),
    )

    model: str = argument("the .onnx file", metavar="MODEL", default="", reads=True)
    patch: str = argument("the patch file, TOML with [[step]] tables", metavar="PATCH", default="", reads=True)

    def steps(self) -> Iterable[Step]:
        from onnxsmith.editor import patch

        return patch.read(self.patch)

    def run(self) -> Report:
        if self.patch:
            return super().run()
        from onnxsmith.base.problem import problem
        from onnxsmith.base.report.parts.edits import StepList
        from onnxsmith.editor import patch

        if self.model:
            raise problem(
                "edit/no-patch",
                "no patch file was given",
                where=self.model,
                fix="add the path of a .toml file with [[step]] tables; `onnxsmith edit` lists the steps",
            )
        return Report(self.name, Verdict.DONE, (StepList(tuple(patch.described())),), headline="")


@dataclass(frozen=True)
class Merge(Command):
    """Join two models, and compare each with its part of the joined model."""

    name = "merge"
    usual_line = "onnxsmith merge net.onnx head.onnx -o whole.onnx"
    examples = (
        ("Name the tensors to join", "onnxsmith merge net.onnx head.onnx --wire output=h -o whole.onnx"),
        ("Put two models side by side", "onnxsmith merge net.onnx new.onnx --siblings -o both.onnx"),
    )

    first: str = argument("the first .onnx file, whose outputs the second model reads", metavar="FIRST", reads=True)
    second: str = argument("the second .onnx file, which reads these outputs", metavar="SECOND", reads=True)
    output: str = option("the file to write", short="-o", metavar="FILE", default="", writes=True)
    wire: tuple[str, ...] = option(
        "OUTPUT=INPUT: this input of the second model reads this output of the first model; repeatable; "
        "default: outputs and inputs of equal names, else the only output and the only input",
        default=(),
        metavar="WIRE",
    )
    siblings: bool = flag(
        "put the models side by side, without connecting outputs to inputs; inputs of the same name become one input"
    )
    keep: bool = flag("in the joined model, also keep the outputs of the first model that the second model reads")
    first_prefix: str = option("put this text before the names of the first model", default="", metavar="TEXT")
    second_prefix: str = option("put this text before the names of the second model", default="", metavar="TEXT")
    no_verify: bool = flag("write the file without verifying it; the report states this")
    verify: Verify = group(Verify)
    save: Save = group(Save)

    def subjects(self) -> tuple[str, ...]:
        return ()

    def shown(self) -> tuple[str, ...]:
        return (self.output,)

    def _wires(self, said: str) -> str:
        """Returns a wire of the two models as an example; `said` may be one of its ends."""
        from onnxsmith.graph.files.load import load

        outputs = [value.name or "" for value in load(self.first).graph.outputs]
        inputs = [value.name or "" for value in load(self.second).graph.inputs]
        source = next((name for name in outputs if name in said), next(iter(outputs), "y"))
        port = next((name for name in inputs if name in said.replace(source, "", 1)), next(iter(inputs), "x"))
        return f"{source}={port}"

    def run(self) -> Report:
        from onnxsmith.base.problem import problem
        from onnxsmith.editor.merge import merge

        if not self.output:
            raise problem("edit/no-output", "no output file was given", fix="add -o merged.onnx")
        if self.wire and self.siblings:
            fix = "leave --siblings out, or leave --wire out"
            raise problem("merge/no-joint", "--siblings connects no tensors, but --wire does", fix=fix)
        wires: dict[str, str] = {}
        for text in self.wire:
            source, equals, port = text.partition("=")
            if not (source and equals and port):
                raise problem(
                    "merge/no-port", f"{text!r} is no wire", fix=f"write {self._wires(text)} in place of {text}"
                )
            if wires.setdefault(source, port) != port:
                from onnxsmith.editor.joint_ports import two_wires

                end = f"the output {source} of the first model"
                raise two_wires(end, [one for one in self.wire if one.partition("=")[0] == source])
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


@dataclass(frozen=True)
class Split(Command):
    """Divide a model into pieces that run separately, and verify that together they compute the same as the model."""

    name = "split"
    usual_line = "onnxsmith split net.onnx -o pieces --into 2"
    examples = (("Name the tensor to cut at", "onnxsmith split net.onnx -o pieces --at relu"),)

    model: str = argument("the .onnx file", metavar="MODEL", reads=True)
    output: str = option("the folder to write", short="-o", metavar="FOLDER", default="")
    into: int = option("the number of pieces; each piece has about the same bytes of weights", default=0, metavar="N")
    at: tuple[str, ...] = option(
        "a tensor that ends a piece, or a table: '{ producer = \"relu\" }'; repeatable", default=(), metavar="TENSOR"
    )
    nodes: bool = flag("make one piece for each node")
    by_nodes: bool = flag("with --into: give each piece about the same number of nodes instead")
    no_verify: bool = flag("write the files without verifying them; the report states this")
    verify: Verify = group(Verify)
    save: Save = group(Save)

    def subjects(self) -> tuple[str, ...]:
        return ()

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
