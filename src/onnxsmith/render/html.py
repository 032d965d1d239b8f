"""Renders a report as one self-contained HTML file: no network, no fonts, one script, which sorts tables."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment

from onnxsmith.render.chart import drawn
from onnxsmith.render.plot import plotted, spanned
from onnxsmith.report.base import Chart, Facts, Intervals, Plot, Report, Table


def to_html(report: Report) -> str:
    """Renders the page. All text is escaped: the names in a model come from strangers."""
    source = files("onnxsmith.render").joinpath("report.html.jinja").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    parts = [(part.title, [(_kind(block), _shown(block)) for block in part.blocks()]) for part in report.parts]
    script = files("onnxsmith.render").joinpath("sort.js").read_text(encoding="utf-8")
    # The page's content security policy allows exactly the script with this hash.
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.from_string(source).render(report=report, parts=parts, script=script, allowed=allowed)


def _kind(block: object) -> str:
    kinds = {Facts: "facts", Table: "table", Chart: "chart", Plot: "plot", Intervals: "intervals"}
    return kinds.get(type(block), "text")


def _shown(block: object) -> object:
    if isinstance(block, Plot):
        return plotted(block)
    if isinstance(block, Intervals):
        return spanned(block)
    return drawn(block) if isinstance(block, Chart) else block
