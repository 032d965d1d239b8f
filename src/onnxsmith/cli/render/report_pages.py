"""Writes the HTML report, and the view of the model that it links to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from onnxsmith.base import folders
from onnxsmith.base.limits import writing_refused
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.html_report import View, to_html


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
