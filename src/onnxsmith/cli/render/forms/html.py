"""`--report report.html`: the page that `--html` writes."""

from __future__ import annotations

from onnxsmith.base.report.base import Report
from onnxsmith.cli.render.forms.base import Form
from onnxsmith.cli.render.html_report import View, to_html


class Html(Form):
    """One HTML page that works offline."""

    described = "an HTML page"

    def texts(self, report: Report, path: str, view: View | None) -> dict[str, str]:
        return {path: to_html(report, view)}

    def is_own(self, start: bytes) -> bool:
        from onnxsmith.graph.files.output_paths import is_page

        return is_page(start)
