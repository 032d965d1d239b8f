"""A report as one HTML file that needs nothing else: no network, no fonts, no scripts."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment

from onnxsmith.report.base import Facts, Report, Table


def to_html(report: Report) -> str:
    """The page. Every text is escaped: names in a model come from who made it."""
    source = files("onnxsmith.render").joinpath("report.html.jinja").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    parts = [(part.title, [(_kind(block), block) for block in part.blocks()]) for part in report.parts]
    return environment.from_string(source).render(report=report, parts=parts)


def _kind(block: object) -> str:
    return "facts" if isinstance(block, Facts) else "table" if isinstance(block, Table) else "text"
