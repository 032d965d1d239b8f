"""Spells the fix of a problem for the verb that failed.

Steps name their settings as a patch file does, `to = "my.model::Block"`, and say MODEL where they do not know the file.
A reader of a command line types options and paths.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxsmith.base.options import called, fields_of, spelled
from onnxsmith.base.problem import Problem
from onnxsmith.base.words import pasted, pasted_words
from onnxsmith.cli.commands.base import Command

_VALUE = r'(?:"[^"]*"|\[[^\[\]]*\]|\d+|true|false)'
_SETTINGS = re.compile(rf"(?<!{{{{ )(?:write )?([a-z_]+ = {_VALUE}(?:, [a-z_]+ = {_VALUE})*)")
_SETTING = re.compile(rf"([a-z_]+) = ({_VALUE})")
_QUOTED = re.compile(r"(`[^`]*`)")
_FILES = ("MODEL", "FIRST", "SECOND", "REFERENCE", "CANDIDATE")
"""Names the arguments that are model files, as the help does. A fix has these names where it does not know the file,
and OUT for the file of `-o`."""


def typed_for(found: Problem, command: Command) -> Problem:
    """Returns the problem with a fix that can be typed for this command."""
    if "\n" in found.fix:
        head, newline, code = found.fix.partition("\n")
        fix = "".join(_with_files(part, command) for part in _QUOTED.split(head)) + newline + code
    else:
        parts = _QUOTED.split(found.fix)
        fix = "".join(
            _with_files(part, command) if part.startswith("`") else _with_options(part, command) for part in parts
        )
    return found if fix == found.fix else dataclasses.replace(found, fix=fix)


def _with_files(part: str, command: Command) -> str:
    """Fills the command's model files into a command of onnxsmith or of Python."""
    if not part.startswith(("`onnxsmith ", "`python -c ")):
        return part
    for field in dataclasses.fields(command):  # type: ignore[arg-type]
        name, value = field.metadata.get("metavar"), getattr(command, field.name)
        if name in _FILES and isinstance(value, str) and value:
            file, at, _ = value.rpartition("@")
            on_runtime = at and not Path(value).exists() and not part.startswith("`onnxsmith compare ")
            path = pasted(file if on_runtime else value)
            part = re.sub(rf"\b{name}\b", lambda _, path=path: path, part)  # type: ignore[misc]
    output = getattr(command, "output", None)
    if isinstance(output, str) and output:
        part = re.sub(r"\bOUT\b", lambda _: pasted(output), part)
    return part


def _with_options(part: str, command: Command) -> str:
    def put(match: re.Match[str]) -> str:
        settings = {name: tomllib.loads(f"value = {value}")["value"] for name, value in _SETTING.findall(match[1])}
        values = _values(command, settings)
        return match[0] if values is None else _spelled(command, values, match[0])

    return _SETTINGS.sub(put, part)


def _values(command: Command, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the settings of a step as values of the command's own fields; None if a setting has no field."""
    own = {one.name for one in dataclasses.fields(command) if one.name in type(command).__annotations__}  # type: ignore[arg-type]
    names = {name: command.step_fields.get(name, name) for name in settings}
    if not set(names.values()) <= own:
        return None
    repeated = {name for name in own if isinstance(getattr(command, name), tuple)}
    return {
        names[name]: _repeated(value) if names[name] in repeated else value
        for name, value in settings.items()
        if not isinstance(value, list) or names[name] in repeated
    } or None


def _repeated(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _spelled(command: Command, values: Mapping[str, Any], text: str) -> str:
    """Returns options for fields that were not given, otherwise the whole command with the new values."""
    fields = {one.name: one for one in dataclasses.fields(command)}  # type: ignore[arg-type]
    chosen = [fields[name] for name in values]
    if all(one.metadata["kind"] != "argument" and getattr(command, one.name) == one.default for one in chosen):
        words = [word for one in chosen for word in _words(one, values[one.name])]
        return f"{'add ' if text.startswith('write ') else ''}{pasted_words(words)}"
    return f"`{whole(dataclasses.replace(command, **values))}`"  # type: ignore[type-var]


def whole(command: Command) -> str:
    """Returns a command as it is typed, without options that have their default value."""
    held = _held(command)
    arguments = [
        word
        for field in fields_of(type(command))
        if field.metadata["kind"] == "argument"
        for word in _arguments(held[called(field)])
    ]
    options = [
        word
        for field in fields_of(type(command))
        if field.metadata["kind"] != "argument" and held[called(field)] != field.default
        for word in _words(field, held[called(field)])
    ]
    return pasted_words(["onnxsmith", *command.name.split(), *arguments, *options])


def _held(settings: Any) -> dict[str, Any]:
    """Returns the values of the fields of a dataclass and of its groups, by the names of the options."""
    values: dict[str, Any] = {}
    for one in dataclasses.fields(settings):
        value = getattr(settings, one.name)
        values |= _held(value) if one.metadata["kind"] == "group" else {called(one): value}
    return values


def _arguments(value: Any) -> Iterator[str]:
    for one in value if isinstance(value, tuple) else (value,):
        if one not in (None, ""):
            yield str(one)


def _words(field: dataclasses.Field[Any], value: Any) -> Iterator[str]:
    option = str(field.metadata.get("short") or spelled(field))
    if isinstance(value, bool):
        yield option if value else spelled(field).replace("--", "--no-", 1)
        return
    for one in value if isinstance(value, tuple) else (value,):
        if one is not None:
            yield option
            yield str(one)
