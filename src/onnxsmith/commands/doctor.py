"""`onnxsmith doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Doctor(Command):
    """Show the installed runtimes, devices and versions, and name the versions that do not work together."""

    name = "doctor"

    def run(self) -> Report:
        from onnxsmith.inspection.doctor import doctor

        return doctor()
