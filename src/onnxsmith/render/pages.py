"""Writes the HTML report, and the view of the model that it links to."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from onnxsmith import folders
from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.render.html import View, to_html
from onnxsmith.report.base import Report
from onnxsmith.report.verdict import Verdict


@dataclass(frozen=True)
class Pages:
    """Where to write the report and the view, "" for not at all, and the models that the view shows."""

    html: str = ""
    view: str = ""
    models: tuple[str, ...] = ()


def write(report: Report, pages: Pages) -> Report:
    """Writes the pages, and returns the report with what went wrong. Both are made, and both are written aside, before
    one is put into place. If the view cannot be made, the report is written without links, and says why."""
    view, made = None, None
    if pages.view and report.parts:
        from onnxsmith.viewing.beside import beside  # a report without a view need not load the room

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
    except OSError as error:
        what = "the HTML report could not be written" if pages.html else "the view could not be written"
        failed = Problem("report/not-written", what, where=", ".join(texts), why=str(error))
        return replace(report, verdict=Verdict.FAILED, problems=(*report.problems, failed))
    return report


def _place(texts: dict[str, str]) -> None:
    with ExitStack() as stack:
        asides = [(stack.enter_context(folders.replacing(Path(path))), text) for path, text in texts.items()]
        for aside, text in asides:
            # file names that are not UTF-8 hold surrogates, which a strict encoder would refuse
            aside.write_bytes(text.encode(errors="backslashreplace"))


def relative(view: str, html: str) -> str:
    """Returns the address of the view in the report. It is relative, so that both can be moved together."""
    if not html:
        return quote(Path(view).name, errors="replace")
    path = os.path.relpath(os.path.realpath(view), Path(os.path.realpath(html)).parent)
    return quote(Path(path).as_posix(), errors="replace")
