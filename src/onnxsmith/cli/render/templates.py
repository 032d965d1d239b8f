"""Fills the templates of this folder: the HTML page, and pictures."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader

from onnxsmith.base.printable import VERBATIM, limited, printable
from onnxsmith.base.report.base import Block, Chart, Facts, Intervals, Plot, Table
from onnxsmith.cli.render.chart import drawn, plotted, spanned

_KINDS = {Facts: "facts", Table: "table", Chart: "chart", Plot: "plot", Intervals: "intervals"}


def filled(template: str, **values: Any) -> str:
    """Returns the template of that name with the values in it. All values are escaped, because names in a model come
    from strangers."""
    return _environment().get_template(template).render(**values)


def source(name: str) -> str:
    """Returns the text of a file of this folder."""
    return files("onnxsmith.cli.render").joinpath(name).read_text(encoding="utf-8")


def block_kind(block: Block) -> str:
    """Returns the name by which templates know a block."""
    return _KINDS.get(type(block), "text")


def laid_out(block: Block) -> object:
    """Returns the coordinates of a chart, a plot or intervals; other blocks as they are."""
    if isinstance(block, Plot):
        return plotted(block)
    if isinstance(block, Intervals):
        return spanned(block)
    return drawn(block) if isinstance(block, Chart) else block


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(source), autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )


def _shown(value: object) -> object:
    """Returns a text as people can see it. What a macro returns stays: its texts were shown before."""
    return printable(limited(value, VERBATIM)) if type(value) is str else value
