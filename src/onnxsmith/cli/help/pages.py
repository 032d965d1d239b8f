"""Lays out the help: commands under the titles of their situations, and the page of one command."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

from onnxsmith.base import rooms
from onnxsmith.cli import families
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.help.situations import SITUATIONS


def write_commands(formatter: Any, family: str) -> None:
    """Writes each command with the first sentence of its help: those of a family such as `baseline`, or with "" all,
    by situation."""
    summaries = _summaries(family)
    sections = SITUATIONS if not family else (("Commands", tuple(summaries)),)
    for title, names in sections:
        with formatter.section(title):
            formatter.write_dl([(name, summaries[name]) for name in names])


def _summaries(family: str) -> dict[str, str]:
    found = {}
    for id_, command in rooms.classes("onnxsmith.cli.commands", Command).items():
        folder, _, name = id_.rpartition("/")
        if folder == family:
            found[name] = _first_sentence(command)
        elif not family:
            found[folder] = _first_sentence(families.package(folder))
    return found


def _first_sentence(described: object) -> str:
    paragraph = (inspect.getdoc(described) or "").partition("\n\n")[0]
    return re.split(r"(?<=\.)\s", " ".join(paragraph.split()))[0]


def write_usual_line(formatter: Any, command: type[Command]) -> None:
    """Writes the command line that most users need."""
    if command.usual_line:
        with formatter.section("The usual line"):
            _write_line(formatter, command.usual_line)


def write_examples(formatter: Any, command: type[Command]) -> None:
    """Writes the examples of a command, each with what it is for."""
    if command.examples:
        with formatter.section("Examples"):
            for what, line in command.examples:
                formatter.write_text(f"{what}:")
                formatter.indent()
                _write_line(formatter, line)
                formatter.dedent()


def _write_line(formatter: Any, line: str) -> None:
    """Writes a command line as it is: if it were broken in two, it could not be pasted."""
    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def write_options(formatter: Any, context: Any, parameters: Sequence[Any], *, whole: bool) -> None:
    """Writes the arguments of a command, and the options that people use; with `whole`, all of them."""
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name == "option"]
    usual = (*context.obj.usual_options, "help")
    shown = [one for one in options if whole or len(usual) == 1 or one.name in usual]
    rows = _rows(shown, context)
    if len(shown) < len(options):
        rows.append(("--help-all", f"Show all {len(options)} options."))
    for title, section in (("Arguments", _rows(arguments, context)), ("Options", rows)):
        if section:
            with formatter.section(title):
                formatter.write_dl(section)


def _rows(parameters: Sequence[Any], context: Any) -> list[tuple[str, str]]:
    return [row for one in parameters if (row := one.get_help_record(context)) is not None]
