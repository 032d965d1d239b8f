"""Renders a report as one self-contained HTML file: no network, no fonts, one script, which sorts tables."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment

from onnxsmith.base.report.base import Chart, Facts, Intervals, Plot, Report, Table
from onnxsmith.cli.render.chart import drawn
from onnxsmith.cli.render.plot import plotted, spanned

Link = Callable[[str, str], str | None]
"""A function that returns the address of a `node`, a `tensor` or a `module` by its name; None if the view has no such
place."""


@dataclass(frozen=True)
class View:
    """The page of the model that the report links to: its address relative to the report, and the addresses of its
    places."""

    address: str
    link: Link


def to_html(report: Report, view: View | None = None) -> str:
    """Renders the page. All text is escaped, because names in a model come from strangers."""
    room = files("onnxsmith.cli.render")
    source, script = (room.joinpath(name).read_text(encoding="utf-8") for name in ("report.html.jinja", "sort.js"))
    shared = files("onnxsmith.viewer.page").joinpath("shared.css").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    parts = [(part.title, [(_kind(block), _shown(block, view)) for block in part.blocks()]) for part in report.parts]
    # The page's content security policy allows exactly the script with this hash.
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.from_string(source).render(
        report=report,
        parts=parts,
        script=script,
        allowed=allowed,
        shared=shared,
        view=view.address if view is not None else "",
    )


def _kind(block: object) -> str:
    kinds = {Facts: "facts", Table: "table", Chart: "chart", Plot: "plot", Intervals: "intervals"}
    return kinds.get(type(block), "text")


def _shown(block: object, view: View | None) -> object:
    if isinstance(block, Plot):
        return plotted(block)
    if isinstance(block, Intervals):
        return spanned(block)
    if isinstance(block, Table):
        return linked(block, view)
    return drawn(block) if isinstance(block, Chart) else block


@dataclass(frozen=True)
class Linked:
    """A table whose cells have a text and an address ("" for none), with the worst row first."""

    head: tuple[str, ...]
    rows: tuple[tuple[tuple[str, str], ...], ...]
    right: tuple[int, ...]


def linked(table: Table, view: View | None) -> Linked:
    """Sorts the rows of a table from worst to best, and links their names to the view."""
    addresses: dict[tuple[int, int], str] = {}
    if view is not None:
        for place in table.places:
            for row, name in enumerate(place.names):
                if (found := view.link(place.kind, name)) is not None:
                    addresses[row, place.column] = view.address + found
    order = table.worst_first or range(len(table.rows))
    rows = tuple(
        tuple((cell, addresses.get((row, column), "")) for column, cell in enumerate(table.rows[row])) for row in order
    )
    return Linked(table.head, rows, table.right)
