"""What a command is.

A command is a frozen dataclass: its fields are the options of the command line, the keys of a configuration, and the
arguments of a test, all from one place. `onnxsmith.options` makes the fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

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
