"""Renders a report as one self-contained HTML file: no network, no fonts, one script, which sorts tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from onnxsmith.base.report.base import Block, Chart, Intervals, Part, Plot, Report, Table, Text, Tone
from onnxsmith.cli.render.templates import block_kind, filled, laid_out, source
from onnxsmith.viewer.inline_elements import policy_hash

Link = Callable[[str, str], str | None]
"""A function that returns the address of a `node`, a `tensor` or a `module` by its name; None if the view has no such
place."""


_PRINTED = 12
"""Rows of a table on paper; the page has all. A choice: an ordinary report then takes two pages."""


@dataclass(frozen=True)
class View:
    """The page of the model that the report links to: its address relative to the report, and the addresses of its
    places."""

    address: str
    link: Link


def to_html(report: Report, view: View | None = None) -> str:
    """Renders the page. All text is escaped, because names in a model come from strangers."""
    script = source("sort.js")
    shared = files("onnxsmith.viewer.page").joinpath("shared.css").read_text(encoding="utf-8")
    sections = [_section(part, view) for part in report.parts]
    texts = [block for one in sections if one.folded for _, block in one.blocks if isinstance(block, Text)]
    warnings = [text for text in texts if text.tone in (Tone.BAD, Tone.WARN)]
    return filled(
        "report.html.jinja",
        report=report,
        parts=sections,
        card=[row for part in report.parts for row in part.card()],
        warnings=sorted(warnings, key=lambda text: text.tone is not Tone.BAD),
        script=script,
        allowed=policy_hash(script),
        shared=shared,
        view=view.address if view is not None else "",
    )


def _section(part: Part, view: View | None) -> _Section:
    blocks = list(part.blocks())
    is_drawn = any(isinstance(block, Chart | Plot | Intervals) for block in blocks)
    folded = bool(part.line() and not part.card()) and not is_drawn
    return _Section(part.title, part.line(), folded, tuple((block_kind(one), _shown(one, view)) for one in blocks))


def _shown(block: Block, view: View | None) -> object:
    return linked(block, view) if isinstance(block, Table) else laid_out(block)


@dataclass(frozen=True)
class _Section:
    """A part of the report. A `folded` one without drawings shows its line, and the blocks when the reader opens
    it."""

    title: str
    line: str
    folded: bool
    blocks: tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, its address ("" for none), and the shares of its bar in percent. `says` is what the
    bar shows."""

    text: str
    address: str = ""
    bar: tuple[float, ...] = ()
    says: str = ""


@dataclass(frozen=True)
class Linked:
    """A table with the worst row first. `printed` is the number of rows on paper."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: tuple[int, ...]
    printed: int = _PRINTED


def linked(table: Table, view: View | None) -> Linked:
    """Sorts the rows of a table from worst to best, and links their names to the view."""
    addresses: dict[tuple[int, int], str] = {}
    if view is not None:
        for place in table.places:
            for row, name in enumerate(place.names):
                if (found := view.link(place.kind, name)) is not None:
                    addresses[row, place.column] = view.address + found
    order = table.worst_first or range(len(table.rows))
    bars = {
        (row, one.column): (_within(shares), one.says) for one in table.bars for row, shares in enumerate(one.shares)
    }
    rows = tuple(
        tuple(
            Cell(text, addresses.get((row, column), ""), *bars.get((row, column), ((), "")))
            for column, text in enumerate(table.rows[row])
        )
        for row in order
    )
    return Linked(table.head, rows, table.right)


def _within(shares: tuple[float, ...]) -> tuple[float, ...]:
    """Returns shares as percentages; a bar beyond 1, or of NaN, as 101."""
    return tuple(round(min(share, 1.01) * 100, 1) if share >= 0 else 101.0 for share in shares)


def relative(view: str, html: str) -> str:
    """Returns the address of the view in the report. It is relative, so that both can be moved together."""
    if not html:
        return quote(Path(view).name, errors="replace")
    path = os.path.relpath(os.path.realpath(view), Path(os.path.realpath(html)).parent)
    return quote(Path(path).as_posix(), errors="replace")
