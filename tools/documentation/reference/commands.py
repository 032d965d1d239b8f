"""Writes a page for each command, and an index by situation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxsmith.cli import command_list
from onnxsmith.cli.help.situations import SITUATIONS
from onnxsmith.cli.usage_schema import usage
from tools.documentation.markdown import code, escaped, fenced, first_sentence, from_docstring, table

FOLDER = "reference/commands"


def pages() -> dict[str, str]:
    """Returns the pages by their path on the site."""
    schema = usage()
    texts = {f"{FOLDER}/{_file(command['name'])}": _page(command) for command in schema["commands"]}
    return {f"{FOLDER}/index.md": _index(schema), **texts}


def by_situation(folder: str, level: int = 2) -> str:
    """Returns a table of commands for each situation, with links to their pages in `folder`."""
    sections = []
    known = usage()["commands"]
    for title, names in SITUATIONS:
        rows = [
            _row(name, [command for command in known if command["name"].split()[0] == name], folder) for name in names
        ]
        sections += [f"{'#' * level} {title}", table(("command", "what it does"), rows)]
    return "\n\n".join(sections)


def _row(name: str, members: list[Mapping[str, Any]], folder: str) -> tuple[str, str]:
    is_family = members[0]["name"] != name
    help_ = command_list.package(name).__doc__ or "" if is_family else members[0]["help"]
    links = ", ".join(f"[`{command['name']}`]({folder}{_file(command['name'])})" for command in members)
    return links, escaped(first_sentence(help_))


def _file(name: str) -> str:
    return f"{name.replace(' ', '-')}.md"


def _index(schema: Mapping[str, Any]) -> str:
    rows = [(code(verdict), str(status)) for verdict, status in schema["verdicts"].items()]
    return "\n\n".join(
        (
            "# Commands",
            "This page lists the commands of onnxsmith, sorted by the situation in which you need them.",
            by_situation(""),
            "## Exit status",
            "Every command ends with the exit status of its verdict. [Stability](../../stability.md) says more.",
            table(("verdict", "exit status"), rows),
            "`onnxsmith --json-usage` prints this reference as JSON.\n",
        )
    )


def _page(command: Mapping[str, Any]) -> str:
    name = command["name"]
    parts = [
        f"# onnxsmith {name}",
        f"This page lists the arguments, the options and examples of `onnxsmith {name}`.",
        from_docstring(command["help"], "sh"),
    ]
    if command["usual_line"]:
        parts += ["## The usual line", fenced(command["usual_line"], "sh")]
    if command["examples"]:
        parts.append("## Examples")
        for example in command["examples"]:
            parts += [f"{escaped(example['what'])}:", fenced(example["line"], "sh")]
    if command["arguments"]:
        rows = [(code(value["name"]), _needed(value), escaped(value["help"])) for value in command["arguments"]]
        parts += ["## Arguments", table(("argument", "needed", "what it is"), rows)]
    rows = [
        (_names(option), _value(option), _default(option), escaped(option["help"])) for option in command["options"]
    ]
    parts += ["## Options", table(("option", "value", "default", "what it does"), rows)]
    return "\n\n".join(parts) + "\n"


def _needed(argument: Mapping[str, Any]) -> str:
    words = ["required" if argument["required"] else "optional", *(["repeatable"] if argument["repeats"] else [])]
    return ", ".join(words)


def _names(option: Mapping[str, Any]) -> str:
    return ", ".join(code(option[key]) for key in ("short", "name") if key in option)


def _value(option: Mapping[str, Any]) -> str:
    return ("flag" if option["type"] == "boolean" else option["type"]) + (", repeatable" if option["repeats"] else "")


def _default(option: Mapping[str, Any]) -> str:
    default = option["default"]
    return "" if default in (None, "", False) else code(str(default).lower() if default is True else str(default))
