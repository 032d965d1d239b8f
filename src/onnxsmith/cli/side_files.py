"""The files that a command writes beside its own: pages, reports in other forms, the record."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command

_REFUSED = ("save/needed", "report/unknown-form")
"""Ids of problems after which nothing is written: a path may be that of an input."""


@dataclass(frozen=True)
class SideFiles:
    """Paths of files, "" or () for none. `html` and `view` are pages, `reports` are reports whose endings say their
    forms, `record` is a verification record."""

    html: str = ""
    view: str = ""
    reports: Sequence[str] = ()
    record: str = ""

    def refuse_loss(self, command: Command) -> None:
        """Raises if an output path of the command is also an input path, or a report has an unknown form. Each verb has
        a stricter check of its own.

        Raises:
            OnnxsmithError: `save/needed`, `report/unknown-form`.
        """
        fields = {field: getattr(command, field.name) for field in dataclasses.fields(command)}  # type: ignore[arg-type]
        writes = [value for field, value in fields.items() if field.metadata.get("writes") and value]
        beside = [path for path in (self.html, self.view, *self.reports, self.record) if path]
        if not writes and not beside:
            return
        from onnxsmith.graph.files.output_paths import refuse_loss, refuse_other_than_page

        reads = [value for field, value in fields.items() if not field.metadata.get("writes")]
        refuse_loss([*writes, *beside], reads, in_place=command.replaces())
        for page in (self.html, self.view):
            refuse_other_than_page(page)
        if self.reports:
            from onnxsmith.cli.render import report_files

            report_files.refuse_loss(self.reports)

    def run(self, command: Command) -> Report:
        """Runs the command, and writes its record.

        Raises:
            OnnxsmithError: those of the command and of the record.
        """
        if not self.record:
            return command.run()
        from onnxsmith.cli import record_option

        return record_option.run(command, self.record)

    def written(self, report: Report, command: Command) -> Report:
        """Writes the pages and reports. Returns the report with the problems of writing them."""
        if not (self.html or self.view or self.reports) or any(one.id in _REFUSED for one in report.problems):
            return report
        from onnxsmith.cli.render.report_files import Pages, write

        return write(report, Pages(self.html, self.view, command.shown(), tuple(self.reports)))
