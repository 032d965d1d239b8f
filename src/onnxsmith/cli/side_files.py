"""The files that a command writes beside its own: pages, reports in other forms, the record."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnxsmith.base import devices
from onnxsmith.base.report.base import Report
from onnxsmith.base.system import standard_output
from onnxsmith.cli import command_words
from onnxsmith.cli.commands.base import Command

_REFUSED = ("save/needed", "save/not-a-file", "run/name-too-long", "report/unknown-form")
"""Ids of problems after which nothing is written: a path may be that of an input."""


@dataclass(frozen=True)
class SideFiles:
    """Paths of files, "" or () for none. `html` and `view` are pages, `reports` are reports whose endings say their
    forms, `record` is a verification record."""

    html: str = ""
    view: str = ""
    reports: Sequence[str] = ()
    record: str = ""

    def streamed(self, command: Command) -> tuple[SideFiles, Command]:
        """Gives standard output to an output at `-` or `/dev/stdout`: the report goes to standard error then. Returns
        these files and the command with `/dev/stdout` in place of `-`."""
        changed = {
            name: devices.STANDARD_OUTPUT for name, path in command_words.written(command).items() if path == "-"
        }
        own = {name: devices.STANDARD_OUTPUT for name in ("html", "view") if getattr(self, name) == "-"}
        files, command = replace(self, **own), replace(command, **changed)  # type: ignore[type-var]
        if any(map(devices.is_standard_output, files._outputs(command))):
            standard_output.take_for_output()
        return files, command

    def _beside(self) -> list[str]:
        return [path for path in (self.html, self.view, *self.reports, self.record) if path]

    def _outputs(self, command: Command) -> list[str]:
        """Returns the paths of all outputs."""
        return [*command_words.written(command).values(), *self._beside()]

    def refuse_loss(self, command: Command) -> None:
        """Raises if an output path of the command is also an input path, or is no file, or a report has an unknown
        form. Each verb has a stricter check of its own.

        Raises:
            OnnxsmithError: `save/needed`, `save/not-a-file`, `report/unknown-form`.
        """
        for path in self._outputs(command):
            devices.refuse(path)
        for path in self._beside():
            devices.refuse_folder(path, ".html" if path in (self.html, self.view) else ".json")
        fields = {field: getattr(command, field.name) for field in dataclasses.fields(command)}  # type: ignore[arg-type]
        writes = [value for field, value in fields.items() if field.metadata.get("writes") and value]
        beside = self._beside()
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
