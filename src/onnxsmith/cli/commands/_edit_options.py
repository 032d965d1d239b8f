"""Provides the options that all editing commands share, and runs their edits."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onnxsmith.base.options import argument, fields_of, flag, group, option, spelled
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.settings import Save, Verify
from onnxsmith.base.words import pasted
from onnxsmith.cli.commands.base import Command

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Editing(Command):
    """A command that edits a model by steps. A subclass gives the steps."""

    model: str = argument("the .onnx file", metavar="MODEL", reads=True)
    output: str = option("the file to write; may be MODEL itself", short="-o", metavar="FILE", default="", writes=True)
    write_patch: str = option("also write the edit steps to this patch file", metavar="FILE", default="", writes=True)
    input: tuple[str, ...] = option(
        "additional inputs to verify on: inputs.npz, x=array.npy, x=photo.png; repeatable",
        default=(),
        metavar="SPEC",
        reads=True,
    )
    no_verify: bool = flag("write the file without verifying it; the report states this")
    keep_unused: bool = flag("keep nodes whose results nothing reads after the edit")
    verify: Verify = group(Verify)
    save: Save = group(Save)

    def is_one_pass(self) -> bool:
        return True

    def replaces(self) -> str:
        return self.model

    def samples(self) -> tuple[str, ...]:
        """Returns the additional inputs to verify on."""
        return self.input

    @abstractmethod
    def steps(self) -> Iterable[Step]:
        """Returns the steps of the edit."""

    def subjects(self) -> tuple[str, ...]:
        return ()

    def shown(self) -> tuple[str, ...]:
        return (self.output or self.model,)

    def run(self) -> Report:
        from onnxsmith.editor.edit import Edit

        if not self.output:
            from onnxsmith.base.problem import problem

            raise problem("edit/no-output", "no output file was given", fix="add -o edited.onnx")
        try:
            return edited(self, lambda edit: edit.apply(self.steps()), Edit)
        except OnnxsmithError as error:
            raise OnnxsmithError(replace(error.problem, fix=_in_options(error.problem.fix, self))) from error.__cause__


_FIELD = re.compile(r"""\b([a-z_]+) = ("[^"]*"|\d+|\[[^\]]*\])""")
"""Matches a field of a step with its value, as a patch file has it."""


def _in_options(fix: str, command: Editing) -> str:
    """Returns a fix in the words of the command line: the fields of its step are options of the command."""
    known = {spelled(field) for field in fields_of(type(command))} - {"--output"}

    def option(match: re.Match[str]) -> str:
        name, value = f"--{match[1].replace('_', '-')}", match[2]
        values = re.findall(r'"([^"]*)"', value) or [value]
        return " ".join(f"{name} {pasted(one)}" for one in values) if name in known else match[0]

    return fix if command.name == "edit" or "do = " in fix else _FIELD.sub(option, fix)


def edited(command: Editing, change: Any, edit: Any) -> Report:
    """Runs an edit with the options of a command, and returns its report."""
    work = edit(
        command.model,
        command.output,
        inputs=command.samples(),
        verify=command.verify if not command.no_verify else False,
        save=command.save,
        write_patch=command.write_patch or None,
        keep_unused=command.keep_unused,
        command=command.name,
    )
    change(work)
    work.finish()
    report: Report = work.result.report
    return report


def step(name: str, /, **fields: Any) -> Step:
    """Makes a step without the fields that are None or empty."""
    from onnxsmith.editor import patch

    return patch.make(name, (), {key: value for key, value in fields.items() if value not in (None, "", (), [])}, name)


def selector(text: str) -> Any:
    """Parses a selector as it is typed: a name, or a table as in a patch file, `{ gives = "y" }`.

    Raises:
        OnnxsmithError: `edit/selector` for a table that is not TOML.
    """
    from onnxsmith.base import user_files
    from onnxsmith.base.problem import problem

    if not text.lstrip().startswith("{"):
        return text
    try:
        return user_files.parse_toml(f"selector = {text}")["selector"]
    except ValueError as error:
        raise problem(
            "edit/selector",
            f"{text!r} is no table",
            why=str(error),
            fix="""write it as in a patch file: '{ name = "relu", op = "Relu" }'""",
        ) from error


def selectors(texts: Iterable[str]) -> list[Any]:
    """Parses selectors as they are typed."""
    return [selector(text) for text in texts]
