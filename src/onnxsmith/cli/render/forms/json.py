"""`--report report.json`: the text that `--json` prints."""

from __future__ import annotations

from onnxsmith.base.report.base import Report
from onnxsmith.cli.render.forms.base import Form
from onnxsmith.cli.render.html_report import View


class Json(Form):
    """The whole report as data."""

    described = "a report in JSON"

    def texts(self, report: Report, path: str, view: View | None) -> dict[str, str]:
        return {path: report.to_json() + "\n"}

    def is_own(self, start: bytes) -> bool:
        return start.startswith(b"{") and all(key in start for key in (b'"schema"', b'"command"', b'"verdict"'))
