"""Writes the files of a report, all or none: the page of `--html`, the view of `--view`, the files of `--report`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from onnxsmith.base import folders
from onnxsmith.base.limits import writing_refused
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.forms.base import form_of
from onnxsmith.cli.render.html_report import View, relative, to_html


@dataclass(frozen=True)
class Pages:
    """The paths of the HTML report and of the view ("" to write none), the models that the view shows, and the paths of
    reports whose endings choose their forms."""

    html: str = ""
    view: str = ""
    models: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()


def refuse_loss(reports: Sequence[str]) -> None:
    """Raises if a path of `--report` has an unknown ending, or a file there is not a report.

    Raises:
        OnnxsmithError: `report/unknown-form`; `save/needed`.
    """
    for path in reports:
        form_of(path).refuse_loss(path)


def write(report: Report, pages: Pages) -> Report:
    """Writes the files, and returns the report with the problems of writing them. All files are written to temporary
    files before one is moved into place. If the view cannot be made, the reports are written without links, and say
    why."""
    made = None
    if pages.view and report.parts:
        from onnxsmith.viewer.html_page import beside  # a report without a view need not load the room

        try:
            made = beside(pages.models, report)
        except OnnxsmithError as error:
            report = replace(report, verdict=Verdict.FAILED, problems=(*report.problems, error.problem))

    def view_from(path: str) -> View | None:
        return View(relative(pages.view, path), made.links.of) if made is not None else None

    texts = _texts(report, pages, view_from)
    pictures = [path for path in texts if path not in {pages.html, *pages.reports}]
    if pictures:  # every form names them, so the texts are made again
        report = replace(report, notes=(*report.notes, f"pictures of --report: {', '.join(pictures)}"))
        texts = _texts(report, pages, view_from)
    try:
        _place(({pages.view: made.page} if made is not None else {}) | texts)
    except _UnwrittenError as error:
        what = "the view could not be written" if error.path == pages.view else "the report could not be written"
        why, fix = writing_refused(error.path, error.cause)
        failed = Problem("report/not-written", what, where=error.path, why=why, fix=fix)
        return replace(report, verdict=Verdict.FAILED, problems=(*report.problems, failed))
    return report


def _texts(report: Report, pages: Pages, view_from: Callable[[str], View | None]) -> dict[str, str]:
    """Returns the texts of all reports, and of the pictures beside them, by path."""
    texts = {pages.html: to_html(report, view_from(pages.html))} if pages.html else {}
    for path in pages.reports:
        texts |= form_of(path).texts(report, path, view_from(path))
    return texts


class _UnwrittenError(Exception):
    """A file could not be written."""

    def __init__(self, path: str, cause: OSError) -> None:
        super().__init__(path)
        self.path, self.cause = path, cause


def _place(texts: dict[str, str]) -> None:
    """Writes all files to temporary files, then moves them into place. If one cannot be moved, those that were moved
    before it, and that replaced no file, are removed."""
    stacks: dict[str, ExitStack] = {}
    new = [path for path in texts if not os.path.lexists(path)]
    placed: list[str] = []
    with ExitStack() as whole:
        for path, text in texts.items():
            stacks[path] = whole.enter_context(ExitStack())
            with _named(path):
                if Path(path).is_dir():
                    raise IsADirectoryError(path)
                aside = stacks[path].enter_context(folders.replacing(Path(path)))
                # file names that are not UTF-8 hold surrogates, which a strict encoder would refuse
                aside.write_bytes(text.encode(errors="backslashreplace"))
        try:
            for path, stack in stacks.items():
                with _named(path):
                    stack.close()
                placed.append(path)
        except _UnwrittenError:
            for path in placed:
                if path in new:
                    Path(path).unlink(missing_ok=True)
            raise


@contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _UnwrittenError(path, error) from error
