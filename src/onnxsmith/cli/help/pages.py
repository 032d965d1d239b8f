"""Lays out the help: commands under the titles of their situations, and the page of one command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from onnxsmith.cli.help.situations import SITUATIONS


class Described(Protocol):
    """What help shows of a command beside its docstring and options."""

    usual_line: str
    usual_options: tuple[str, ...]
    examples: tuple[tuple[str, str], ...]


def write_commands(formatter: Any, summaries: Mapping[str, str], *, by_situation: bool) -> None:
    """Writes commands with a sentence each. `summaries` maps their names to these sentences."""
    sections = SITUATIONS if by_situation else (("Commands", tuple(summaries)),)
    for title, names in sections:
        with formatter.section(title):
            formatter.write_dl([(name, summaries[name]) for name in names])


def write_usual_line(formatter: Any, command: Described) -> None:
    """Writes the command line that most users need."""
    if command.usual_line:
        with formatter.section("The usual line"):
            _write_line(formatter, command.usual_line)


def write_examples(formatter: Any, command: Described) -> None:
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
