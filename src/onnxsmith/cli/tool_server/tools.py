"""Describes commands as tools, from what `onnxsmith --json-usage` says about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

VERBS = ("export", "simplify", "compare", "inspect", "explain", "op", "diff", "check")
"""Names the commands that are tools."""
_PRESENTATION = ("--json", "--verbose", "--quiet")
"""Options that say how a terminal shows a report. An agent reads the whole report as data."""
_SUFFIXES = {
    "--output": (".onnx", ".onnxtxt"),
    "--html": (".html",),
    "--view": (".html",),
    "--record": (".json",),
    "--report": (".html", ".json", ".md", ".sarif", ".xml"),
    "--weights": (".safetensors", ".npz"),
    "--worst-input": (".npz",),
}
"""Maps each option that writes a file to the endings of its file. An ending keeps an agent from replacing files of
another kind, such as a program."""
_PATHS = ("--html", "--view", "--record", "--report")
"""Options that commands share and that write a file."""
MUST_WRITE = ("export", "simplify")
"""Commands that write a file each time."""
OUTPUT = "--output"


@dataclass(frozen=True)
class Parameter:
    """One argument or option of a command. `name` is its name in a call, `typed` its name on the command line. `kind`
    is a type of JSON. `suffixes` are the endings of a file that it writes, () if it writes none."""

    name: str
    typed: str
    help: str
    kind: str
    repeats: bool
    required: bool
    default: Any
    reads: bool
    suffixes: tuple[str, ...]

    @property
    def is_argument(self) -> bool:
        """Whether the command line has the value without a name."""
        return not self.typed.startswith("--")

    def schema(self) -> dict[str, Any]:
        """Returns the JSON schema of the value."""
        value: dict[str, Any] = {"type": self.kind}
        if self.repeats:
            value = {"type": "array", "items": value}
        default = {"default": self.default} if self.default not in (None, "", False) else {}
        return {**value, "description": self.help, **default}


@dataclass(frozen=True)
class Tool:
    """A command as a tool. `hidden` are parameters that only a server with `--write` has."""

    verb: str
    description: str
    parameters: tuple[Parameter, ...]
    hidden: tuple[Parameter, ...]

    def schema(self) -> dict[str, Any]:
        """Returns the JSON schema of the arguments."""
        return {
            "type": "object",
            "properties": {one.name: one.schema() for one in self.parameters},
            "required": [one.name for one in self.parameters if one.required],
            "additionalProperties": False,
        }

    def parameter(self, name: str) -> Parameter | None:
        """Returns the parameter of this name. `per-layer` and `--per-layer` also name `per_layer`."""
        return next((one for one in self.parameters if one.name == _name(name)), None)

    def is_hidden(self, name: str) -> bool:
        """Whether a server with `--write` has a parameter of this name."""
        return any(one.name == _name(name) for one in self.hidden)


def tools(usage: Mapping[str, Any], *, write: bool, code: bool) -> dict[str, Tool]:
    """Returns the tools by name. `usage` is what `onnxsmith --json-usage` prints. `write` and `code` say whether the
    server keeps files, and whether it runs Python files."""
    commands = {one["name"]: one for one in usage["commands"]}
    return {verb: _tool(commands[verb], write=write, code=code) for verb in VERBS}


def _tool(command: Mapping[str, Any], *, write: bool, code: bool) -> Tool:
    every = [*command["arguments"], *command["options"]]
    parameters = [_parameter(one) for one in every if one["name"] not in _PRESENTATION]
    kept = [one for one in parameters if write or not one.suffixes or one.typed == OUTPUT]
    texts = [command["help"], f"On a command line: `{command['usual_line']}`", *_limits(command["name"], write, code)]
    return Tool(command["name"], "\n\n".join(texts), tuple(kept), tuple(one for one in parameters if one not in kept))


def _limits(verb: str, write: bool, code: bool) -> Iterator[str]:
    if verb in MUST_WRITE and not write:
        yield (
            "This server is read-only: the file is written to a temporary folder, verified and removed. The user keeps "
            "files with `onnxsmith mcp --write`."
        )
    if verb == "export" and not code:
        yield (
            "This server refuses each export, because an export runs Python code of the folder. The user allows it "
            "with `onnxsmith mcp --allow-code`."
        )


def _parameter(about: Mapping[str, Any]) -> Parameter:
    typed = about["name"]
    writes = bool(about.get("writes")) or typed in _PATHS
    return Parameter(
        name=_name(typed),
        typed=typed,
        help=about["help"],
        kind=about["type"],
        repeats=about["repeats"],
        required=about["required"],
        default=about["default"],
        reads=bool(about.get("reads")),
        suffixes=_SUFFIXES[typed] if writes else (),
    )


def _name(typed: str) -> str:
    return re.sub(r"\W", "_", typed.lstrip("-")).lower()
