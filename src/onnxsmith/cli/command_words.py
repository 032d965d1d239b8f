"""Writes a command as the words that give it, and reads the words again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any

from onnxsmith.base.options import called, spelled
from onnxsmith.cli.commands.base import Command


def words(command: Command) -> tuple[str, ...]:
    """Returns the words after `onnxsmith` that give the command: its name, the arguments, and the options that have
    another value than their default. The options that only say how to show a report are not among them."""
    arguments, options = [], []
    for field, value in values(command):
        if field.metadata["kind"] == "argument":
            arguments += [str(one) for one in _listed(value)] if value != field.default else []
        elif value not in (field.default, ()):
            options += list(_option(field, value))
    if any(one.startswith("-") for one in arguments):  # only behind -- are they no options
        return (*command.name.split(), *options, "--", *arguments)
    return (*command.name.split(), *arguments, *options)


def values(settings: Any) -> Iterator[tuple[Field[Any], Any]]:
    """Yields each field of a command, and of its groups of settings, with its value."""
    for one in fields(settings):
        if one.metadata["kind"] == "group":
            yield from values(getattr(settings, one.name))
        else:
            yield one, getattr(settings, one.name)


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _option(field: Field[Any], value: Any) -> Iterator[str]:
    name = spelled(field)
    if isinstance(value, bool):
        yield name if value else name.replace("--", "--no-", 1)
        return
    for one in map(str, _listed(value)):
        if one.startswith("-"):
            yield f"{name}={one}"
        else:
            yield from (name, one)


def read(command: Command) -> tuple[str, ...]:
    """Returns the words that name input files and folders, as they were typed."""
    return tuple(word for field, value in values(command) if field.metadata.get("reads") for word in _texts(value))


def written(command: Command) -> dict[str, str]:
    """Returns the path of each output, as it was typed, by the name of its option in Python. `-o` names an output."""
    return {
        called(field): value
        for field, value in values(command)
        if (field.metadata.get("writes") or field.metadata.get("short") == "-o") and isinstance(value, str) and value
    }


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in _listed(value) if one)
