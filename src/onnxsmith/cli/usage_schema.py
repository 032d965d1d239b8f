"""Describes the whole command line as data, for programs and agents."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field
from typing import Any

from onnxsmith._version import __version__
from onnxsmith.base import rooms
from onnxsmith.base.options import fields_of, spelled
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import command_parameters
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.help.situations import SITUATIONS

VERSION = 1
"""Grows when a program that reads this would misread it."""
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def usage() -> dict[str, Any]:
    """Returns all commands with their arguments and options, what each verdict means, and the exit statuses."""
    commands = rooms.classes("onnxsmith.cli.commands", Command).values()
    return {
        "schema": VERSION,
        "version": __version__,
        "program": "onnxsmith",
        "verdicts": {one.value: one.exit_code for one in Verdict},
        "commands": [_command(one) for one in sorted(commands, key=lambda one: one.name)],
    }


def _command(command: type[Command]) -> dict[str, Any]:
    family = command.name.split()[0]
    kinds = _kinds(command)
    fields = [(field, kinds[field.name]) for field in fields_of(command) if not field.metadata.get("now")]
    return {
        "name": command.name,
        "situation": next(title for title, names in SITUATIONS if family in names),
        "help": inspect.getdoc(command) or "",
        "usual_line": command.usual_line,
        "examples": [{"what": what, "line": line} for what, line in command.examples],
        "arguments": [_parameter(one, kind) for one, kind in fields if one.metadata["kind"] == "argument"],
        "options": [
            *(_parameter(one, kind) for one, kind in fields if one.metadata["kind"] != "argument"),
            *_shared(command),
        ],
    }


def _kinds(settings: type[Any]) -> dict[str, Any]:
    """Returns the types of the fields of a dataclass, and of its groups."""
    found = typing.get_type_hints(settings)
    groups = [
        one.metadata["settings"] for one in settings.__dataclass_fields__.values() if one.metadata["kind"] == "group"
    ]
    for group in groups:
        found |= _kinds(group)
    return found


def _parameter(field: Field[Any], kind: Any) -> dict[str, Any]:
    about = field.metadata
    is_argument = about["kind"] == "argument"
    default = None if field.default is MISSING else field.default
    repeats = typing.get_origin(kind) is tuple or field.default == ()
    return {
        "name": about.get("metavar") or field.name.upper() if is_argument else spelled(field),
        **({"short": about["short"]} if about.get("short") else {}),
        "help": about["help"],
        "type": _type(kind),
        "repeats": repeats,
        "required": field.default is MISSING and is_argument,
        "default": None if repeats else default,
        **({"reads": True} if about.get("reads") else {}),
        **({"writes": True} if about.get("writes") else {}),
    }


def _type(kind: Any) -> str:
    """Returns the JSON type of a value, or of each value of an option that repeats."""
    if typing.get_origin(kind) is tuple:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kind = next(one for one in typing.get_args(kind) if one is not type(None))
    return _TYPES.get(kind, "string")


def _shared(command: type[Command]) -> Iterator[Mapping[str, Any]]:
    """Yields the options that commands share."""
    shared = command_parameters.shared(view=command.takes_view(), record=command.takes_record())
    for name, (kind, option, default) in shared.items():
        yield {
            "name": f"--{name}",
            "help": option.help,
            "type": "string" if kind is not bool else "boolean",
            "repeats": default == [],
            "required": False,
            "default": None if default == [] else default,
        }
