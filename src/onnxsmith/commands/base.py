"""What a command is, and how its options are told.

A command is a frozen dataclass: its fields are the options of the command line, the keys of a configuration, and the
arguments of a test, all from one place. A field's metadata, made by `argument`, `option` or `flag`, holds its help.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import MISSING, field
from typing import Any, ClassVar

from onnxsmith.report.base import Report


class Command(ABC):
    """One command. A subclass is a frozen dataclass whose docstring is its help.

    Modules of this room import at the top only what is light: `--help` reads all of them.
    """

    name: ClassVar[str]

    def replaces(self) -> str | None:
        """The file that the command may both read and write, which is then replaced as a whole."""
        return None

    @abstractmethod
    def run(self) -> Report:
        """Does it. Raises OnnxsmithError for what the user can mend."""


def argument(help: str, *, default: Any = MISSING, metavar: str = "") -> Any:  # noqa: A002
    """A positional argument."""
    return _field("argument", help, default, metavar=metavar)


def option(
    help: str,  # noqa: A002
    *,
    default: Any = None,
    short: str = "",
    metavar: str = "",
    writes: bool = False,
) -> Any:
    """An option with a value; a field of type `tuple[str, ...]` may be given several times. One that `writes` names a
    file or folder that is written."""
    return _field("option", help, default, short=short, metavar=metavar, writes=writes)


def flag(help: str, *, default: bool = False) -> Any:  # noqa: A002
    """An option that is there or not. A field called `no_…` is given as `--no-…`."""
    return _field("flag", help, default)


def _field(kind: str, text: str, default: Any, **more: Any) -> Any:
    metadata = {"kind": kind, "help": text, **more}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)
