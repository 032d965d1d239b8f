"""`onnxsmith doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Doctor(Command):
    """Show the installed runtimes, devices and versions, and name the versions that do not work together."""

    name = "doctor"

    def run(self) -> Report:
        from onnxsmith.viewer.inspection.doctor import doctor

        return doctor()
