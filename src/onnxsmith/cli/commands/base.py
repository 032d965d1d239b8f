"""The base class of commands.

A command is a frozen dataclass. Its fields are the options of the command line; `onnxsmith.base.options` makes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from onnxsmith.base.report.base import Report


class Command(ABC):
    """One command. A subclass is a frozen dataclass whose docstring is its help.

    Modules of this room import heavy libraries inside `run` only: `--help` imports every module.
    """

    name: ClassVar[str]
    """The words after `onnxsmith`: `simplify`; `baseline check` if the command lies in the folder `baseline`."""
    usual_line: ClassVar[str] = ""
    """The command line that most users need. A test runs it."""
    usual_options: ClassVar[tuple[str, ...]] = ()
    """The fields that `--help` shows, if they are not all; `--help-all` shows all."""
    examples: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs what a user may want with the command line for it. A test runs each."""
    step_fields: ClassVar[Mapping[str, str]] = {}
    """Maps settings of the command's step, as a patch file names them, to the command's fields with other names."""

    def refuse(self) -> None:
        """Raises OnnxsmithError for options that cannot be right, as far as the options alone tell. It is called first,
        and imports nothing heavy."""
        return

    def is_one_pass(self) -> bool:
        """Whether the command goes through its models once, and its process ends then. Nothing is worth collecting
        before: a graph is one large live cycle, which each collection would walk."""
        return False

    def replaces(self) -> str | None:
        """Returns the input file that the command may overwrite; None if it overwrites no input."""
        return None

    def shown(self) -> tuple[str, ...]:
        """Returns the model files that `--view` shows beside the report: one, or two with their difference. A command
        without this method is not about a model file, and has no option `--view`."""
        return ()

    def subjects(self) -> tuple[str, ...]:
        """Returns the models that the command judges without writing them, as they were typed. The record of
        `--record` is about them, and about every file that the command writes. A command without this method makes no
        statement about a model, and has no option `--record`."""
        return ()

    @classmethod
    def takes_view(cls) -> bool:
        """Whether the command has the option `--view`."""
        return cls.shown is not Command.shown

    @classmethod
    def takes_record(cls) -> bool:
        """Whether the command has the option `--record`."""
        return cls.subjects is not Command.subjects

    @abstractmethod
    def run(self) -> Report:
        """Runs the command. Raises OnnxsmithError for an error that the user can fix."""


def refuse_missing(*runtimes: str) -> None:
    """Raises `runtime/not-installed` if a runtime that a command cannot do without is not installed."""
    from onnxsmith.runtimes.base import get

    for name in runtimes:
        get(name)
