"""Shows reports and unfinished models in a notebook: each makes a `Card`, and one renderer writes all cards as HTML."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from onnxsmith.base.printable import printable
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Part, Report
from onnxsmith.base.report.verdict import Verdict

_RENDERER = "onnxsmith.cli.render.notebook"
"""Names the module that writes cards. It is imported when a notebook asks, because it lies on a higher floor:
docs/decisions/0031."""


@dataclass(frozen=True)
class Card:
    """What a notebook shows of an object.

    `facts` are labelled values beside the verdict. `parts` are titles with their blocks; a reader unfolds them. An
    unfinished model has no `verdict`. `more` is the Python code that shows the model. `page` is the HTML page of
    `view`, which is shown below the card.
    """

    title: str
    headline: str = ""
    verdict: Verdict | None = None
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    parts: tuple[tuple[str, tuple[Block, ...]], ...] = ()
    more: str = ""
    page: str = ""
    facts: tuple[tuple[str, str], ...] = ()


def to_html(card: Card) -> str:
    """Returns the card as HTML that can stand in any page: its style changes nothing around it."""
    return str(importlib.import_module(_RENDERER).to_html(card))


def of_report(report: Report, *, more: str = "", page: str = "") -> Card:
    """Returns the card of a report."""
    return Card(
        f"onnxsmith {report.command}",
        report.headline,
        report.verdict,
        report.problems,
        report.notes,
        tuple((_title(part), tuple(part.blocks())) for part in report.parts),
        more,
        page,
        tuple(row for part in report.parts for row in part.card()),
    )


def _title(part: Part) -> str:
    """Returns the title of a part, with the part in one line if it has such a line."""
    return f"{part.title}: {part.line()}" if part.line() else part.title


def in_short(kind: str, report: Report) -> str:
    """Returns a line about a report, or about a result with it, for a terminal."""
    said = report.headline or next((one.what for one in report.problems), "")
    return printable(f"<{kind} of {report.command}, {report.verdict.value}{f': {said}' if said else ''}>")
