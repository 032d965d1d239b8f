"""Renders a report as one self-contained HTML file: no network, no fonts, one script, which sorts tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from onnxsmith.base.report.base import Block, Report, Table
from onnxsmith.cli.render.templates import block_kind, filled, laid_out, source
from onnxsmith.viewer.inline_elements import policy_hash

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
    script = source("sort.js")
    shared = files("onnxsmith.viewer.page").joinpath("shared.css").read_text(encoding="utf-8")
    parts = [
        (part.title, [(block_kind(block), _shown(block, view)) for block in part.blocks()]) for part in report.parts
    ]
    return filled(
        "report.html.jinja",
        report=report,
        parts=parts,
        script=script,
        allowed=policy_hash(script),
        shared=shared,
        view=view.address if view is not None else "",
    )


def _shown(block: Block, view: View | None) -> object:
    return linked(block, view) if isinstance(block, Table) else laid_out(block)


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


def relative(view: str, html: str) -> str:
    """Returns the address of the view in the report. It is relative, so that both can be moved together."""
    if not html:
        return quote(Path(view).name, errors="replace")
    path = os.path.relpath(os.path.realpath(view), Path(os.path.realpath(html)).parent)
    return quote(Path(path).as_posix(), errors="replace")
