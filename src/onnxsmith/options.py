"""Makes the fields of dataclasses that are options of the command line. A field's metadata holds its help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, field, fields
from typing import Any


def argument(help: str, *, default: Any = MISSING, metavar: str = "") -> Any:  # noqa: A002
    """A positional argument."""
    return _field("argument", help, default, metavar=metavar)


def option(
    help: str,  # noqa: A002
    *,
    default: Any = None,
    short: str = "",
    metavar: str = "",
    name: str = "",
    writes: bool = False,
) -> Any:
    """An option with a value; a field of type `tuple[str, ...]` may be given several times. `name` is what the command
    line calls it, where that is not the field's name. One that `writes` names a file or folder that is written."""
    return _field("option", help, default, short=short, metavar=metavar, name=name, writes=writes)


def flag(help: str, *, default: bool = False) -> Any:  # noqa: A002
    """An option that is there or not. A field called `no_…` is given as `--no-…`."""
    return _field("flag", help, default)


def group(settings: type[Any]) -> Any:
    """A dataclass whose own fields are options of the command: settings that several commands, and Python, share."""
    return field(default_factory=settings, metadata={"kind": "group", "settings": settings})


def fields_of(settings: type[Any]) -> Iterator[Field[Any]]:
    """The fields of a dataclass, those of its groups among them."""
    for one in fields(settings):
        if one.metadata["kind"] == "group":
            yield from fields_of(one.metadata["settings"])
        else:
            yield one


def called(one: Field[Any]) -> str:
    """The name of a field on the command line, as Python writes it: `no_verify`."""
    return str(one.metadata.get("name") or one.name)


def _field(kind: str, text: str, default: Any, **more: Any) -> Any:
    metadata = {"kind": kind, "help": text, **more}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)
