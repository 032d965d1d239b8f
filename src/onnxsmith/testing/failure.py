"""Raises the AssertionError of a report that is not done: one screen of text, and the page of the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.answers import Answers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import shortened
from onnxsmith.testing import pages

_LINES = 20
"""The most lines of a failure. A choice: with pytest's own lines it fits on one screen."""
_ROWS = 6
"""The most differences of answers that a failure lists. A choice."""
_WIDEST = 500
"""The most characters of a line. A choice: three lines of a terminal."""


def raise_unless_done(report: Report) -> None:
    """Raises an AssertionError if the verdict of a report is not `done`."""
    __tracebackhide__ = True
    if report.verdict is Verdict.DONE:
        return
    lines = [report.headline, *_problems(report), *_answers(report)]
    page = _written(report)
    lines += [f"page: {page}"] if page is not None else []
    raise AssertionError("\n".join(shortened(line, _WIDEST) for line in lines[:_LINES]))


def raise_problem(error: OnnxsmithError) -> NoReturn:
    """Raises the problem of an error as an AssertionError."""
    __tracebackhide__ = True
    raise AssertionError(str(error.problem)) from error


def _problems(report: Report) -> Iterator[str]:
    for found in report.problems:
        yield from str(found).splitlines()


def _answers(report: Report) -> Iterator[str]:
    part = next((one for one in report.parts if isinstance(one, Answers)), None)
    rows = part.differences if part is not None else ()
    yield from (f"  {one.input}, {one.at or 'the answer'}: {one.what}" for one in rows[:_ROWS])
    if len(rows) > _ROWS:
        yield f"  … and {len(rows) - _ROWS} more"


def _written(report: Report) -> Path | None:
    path = pages.current() if pages.current is not None else None
    if path is None:
        return None
    from onnxsmith.cli.render.html_report import to_html

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_html(report), encoding="utf-8")
    return path
