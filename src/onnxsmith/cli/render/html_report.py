"""Renders a report as one self-contained HTML file: no network, no fonts, one script, which sorts tables."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment

from onnxsmith.base import folders
from onnxsmith.base.limits import writing_refused
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Chart, Facts, Intervals, Plot, Report, Table
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.chart import drawn, plotted, spanned

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


@dataclass(frozen=True)
class Pages:
    """The paths of the report and of the view ("" to write none), and the models that the view shows."""

    html: str = ""
    view: str = ""
    models: tuple[str, ...] = ()


def write(report: Report, pages: Pages) -> Report:
    """Writes the pages, and returns the report with the problems of writing them. Both pages are written to temporary
    files before either is moved into place. If the view cannot be made, the report is written without links, and says
    why."""
    view, made = None, None
    if pages.view and report.parts:
        from onnxsmith.viewer.html_page import beside  # a report without a view need not load the room

        try:
            made = beside(pages.models, report)
            view = View(relative(pages.view, pages.html), made.links.of)
        except OnnxsmithError as error:
            report = replace(report, verdict=Verdict.FAILED, problems=(*report.problems, error.problem))
    texts = {pages.view: made.page} if made is not None else {}
    if pages.html:
        texts[pages.html] = to_html(report, view)
    try:
        _place(texts)
    except _UnwrittenError as error:
        what = "the HTML report could not be written" if pages.html else "the view could not be written"
        why, fix = writing_refused(error.path, error.cause)
        failed = Problem("report/not-written", what, where=error.path, why=why, fix=fix)
        return replace(report, verdict=Verdict.FAILED, problems=(*report.problems, failed))
    return report


class _UnwrittenError(Exception):
    """A file could not be written."""

    def __init__(self, path: str, cause: OSError) -> None:
        super().__init__(path)
        self.path, self.cause = path, cause


def _place(texts: dict[str, str]) -> None:
    """Writes all files to temporary files, then moves them into place."""
    stacks: dict[str, ExitStack] = {}
    with ExitStack() as whole:
        for path, text in texts.items():
            stacks[path] = whole.enter_context(ExitStack())
            with _named(path):
                aside = stacks[path].enter_context(folders.replacing(Path(path)))
                # file names that are not UTF-8 hold surrogates, which a strict encoder would refuse
                aside.write_bytes(text.encode(errors="backslashreplace"))
        for path, stack in stacks.items():
            with _named(path):
                stack.close()


@contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _UnwrittenError(path, error) from error


def relative(view: str, html: str) -> str:
    """Returns the address of the view in the report. It is relative, so that both can be moved together."""
    if not html:
        return quote(Path(view).name, errors="replace")
    path = os.path.relpath(os.path.realpath(view), Path(os.path.realpath(html)).parent)
    return quote(Path(path).as_posix(), errors="replace")
