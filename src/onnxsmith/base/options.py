"""Makes dataclass fields that are also options of the command line. The metadata of a field holds its help text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, field, fields
from typing import Any


def argument(help: str, *, default: Any = MISSING, metavar: str = "", reads: bool = False) -> Any:  # noqa: A002
    """Makes the field of a positional argument. `reads` marks an argument that names input files or folders."""
    return _field("argument", help, default, metavar=metavar, reads=reads)


def option(
    help: str,  # noqa: A002
    *,
    default: Any = None,
    short: str = "",
    metavar: str = "",
    name: str = "",
    reads: bool = False,
    writes: bool = False,
    now: str = "",
) -> Any:
    """Makes the field of an option with a value. A field of type `tuple[str, ...]` may be given several times. `name`
    is the option's name if it is not the field's name. `reads` marks an option that names input files or folders,
    `writes` one that names an output file or folder. `now` names the option that took the place of a deprecated one,
    which works as before, but is not in the help."""
    more = {"short": short, "metavar": metavar, "name": name, "reads": reads, "writes": writes, "now": now}
    return _field("option", help, default, **more)


def flag(help: str, *, default: bool = False) -> Any:  # noqa: A002
    """Makes the field of an option without a value. A field called `no_…` becomes `--no-…`."""
    return _field("flag", help, default)


def group(settings: type[Any]) -> Any:
    """Makes the field of a nested dataclass whose own fields are options too: settings that several commands and the
    Python API share."""
    return field(default_factory=settings, metadata={"kind": "group", "settings": settings})


def fields_of(settings: type[Any]) -> Iterator[Field[Any]]:
    """Yields the fields of a dataclass and the fields of its groups."""
    for one in fields(settings):
        if one.metadata["kind"] == "group":
            yield from fields_of(one.metadata["settings"])
        else:
            yield one


def called(one: Field[Any]) -> str:
    """Returns the option's name in Python's spelling: `no_verify` for `--no-verify`."""
    return str(one.metadata.get("name") or one.name)


def spelled(one: Field[Any]) -> str:
    """Returns the option as it is typed: `--no-verify`. An underscore at the end, as of `from_`, is not typed."""
    return f"--{called(one).rstrip('_').replace('_', '-')}"


def deprecated(settings: Any) -> Iterator[str]:
    """Yields a note for each deprecated option that was given."""
    for one in fields(settings):
        if one.metadata.get("now") and getattr(settings, one.name) != one.default:
            yield f"{spelled(one)} is deprecated: use {one.metadata['now']}, which takes the same values"


def _field(kind: str, text: str, default: Any, **more: Any) -> Any:
    metadata = {"kind": kind, "help": text, **more}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)
