"""Raises the AssertionError of a report that is not done: one screen of text, and the page of the report."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from onnxsmith.base import folders, unexpected
from onnxsmith.base.printable import printable
from onnxsmith.base.problem import Problem
from onnxsmith.base.remedies import alternatives
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.answers import Answers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import pasted, shortened
from onnxsmith.testing import pages

_LINES = 20
"""The most lines of a failure. A choice: with pytest's own lines it fits on one screen."""
_ROWS = 6
"""The most differences of answers that a failure lists. A choice."""
_WIDEST = 500
"""The most characters of a line. A choice: three lines of a terminal."""


def raise_unless_done(report: Report, files: Mapping[str, Any] | None = None, more: Sequence[str] = ()) -> None:
    """Raises an AssertionError if the verdict of a report is not `done`. `files` maps what a fix calls a model, such as
    `REFERENCE`, to what the test gave; `more` are lines below the problems."""
    __tracebackhide__ = True
    if report.verdict is Verdict.DONE:
        return
    report = replace(report, problems=tuple(_filled(one, files or {}) for one in report.problems))
    lines = [*filter(None, [report.headline]), *_problems(report), *_answers(report), *more]
    page = _written(report)
    lines = [*lines[:_LINES], *([f"page: {page}"] if page is not None else [])]
    raise AssertionError(
        "\n".join(shortened(printable(line), _WIDEST) for line in lines)
    ) from None  # no trace of this package


def raise_problem(error: Exception, files: Mapping[str, Any] | None = None, more: Sequence[str] = ()) -> NoReturn:
    """Raises the problem of an error as an AssertionError: what stops an assertion is told like what it finds."""
    __tracebackhide__ = True
    found = _misspelled(error) or unexpected.problem_of(error, "the assertion")
    raise_unless_done(Report("test", Verdict.FAILED, problems=(found,)), files, more)
    raise AssertionError  # never reached: the verdict is not done


def _misspelled(error: Exception) -> Problem | None:
    """Returns the problem of an option that does not exist: the call itself fails then, in the assertion."""
    if not isinstance(error, TypeError):
        return None
    frame = traceback.extract_tb(error.__traceback__)[-1]
    is_call = Path(frame.filename).name == "assertions.py" and Path(frame.filename).parent == Path(__file__).parent
    return Problem("gate/option", str(error), fix="leave the option out, or correct its name") if is_call else None


def _filled(found: Problem, files: Mapping[str, Any]) -> Problem:
    """Returns the problem with the paths of the test in its fix. An alternative for which the test has no file is left
    out."""
    paths = {name: pasted(file) for name, file in files.items() if isinstance(file, str | Path)}
    kept = [
        one for one in alternatives(found.fix) if not any(_is_in(name, one) for name in files.keys() - paths.keys())
    ]
    fix = "; or ".join(kept) if len(kept) < len(alternatives(found.fix)) else found.fix
    for name, path in paths.items():
        fix = re.sub(rf"\b{name}\b", lambda _, path=path: path, fix)  # type: ignore[misc]
    return replace(found, fix=fix)


def _is_in(name: str, text: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def _problems(report: Report) -> Iterator[str]:
    """Yields the lines of the problems. Nothing is tried in a test, so the label of a fix does not say so."""
    for found in report.problems:
        yield f"{found.id}: {found.what}"
        for label, text in found.details():
            yield from f"  {label.removesuffix(' (not tried)')}: {text}".splitlines()


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
    with folders.replacing(path) as aside:
        aside.write_text(to_html(report), encoding="utf-8")
    return path
