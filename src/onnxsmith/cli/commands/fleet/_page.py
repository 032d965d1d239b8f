"""The options of the commands that write the page of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxsmith.base.options import flag, option
from onnxsmith.base.report.base import Report

if TYPE_CHECKING:
    from onnxsmith.fleet.page.content import Origin
    from onnxsmith.fleet.page.files import WrittenPage


def page_option() -> Any:
    """Makes the field of `--page`."""
    return option(
        "write the table as one HTML page, and the reports of the cells into a folder beside it",
        default="",
        metavar="FILE",
        writes=True,
    )


def every_cell_flag() -> Any:
    """Makes the field of `--every-cell`."""
    return flag("with --page: also write the reports of cells that are done, if there are over 500 cells")


def refuse(page: str, *, every: bool) -> None:
    """Raises if the page cannot be written.

    Raises:
        OnnxsmithError: `fleet/page`, `save/…`.
    """
    from onnxsmith.base.problem import problem

    if every and not page:
        raise problem("fleet/page", "--every-cell has no page", fix="add --page fleet.html, or leave --every-cell out")
    if page:
        from onnxsmith.fleet.page import files

        files.refuse(page)


def with_page(report: Report, page: str, plan: str, store: str, *, every: bool) -> Report:
    """Writes the page of a report with the table of a run, if one is asked for. Returns the report with what was
    written, or with the problem of writing it."""
    if not page:
        return report
    from onnxsmith.base.clock import Clock
    from onnxsmith.base.problem import OnnxsmithError
    from onnxsmith.base.report.parts.fleet import FleetMatrix
    from onnxsmith.base.report.verdict import Verdict
    from onnxsmith.cli.render.html_report import to_html
    from onnxsmith.fleet.page import files

    try:
        with Clock() as clock:
            written = files.write(report.part(FleetMatrix), page, to_html, _origin(plan, store), every=every)
    except OnnxsmithError as error:
        return replace(report, verdict=Verdict.FAILED, problems=(*report.problems, error.problem))
    return _told(report, written, clock.seconds)


def _origin(plan: str, store: str) -> Origin:
    from onnxsmith.fleet.page.content import Origin

    if not plan.endswith(".toml"):
        return Origin(store=store)
    return Origin(plan, str(Path(plan).absolute().parent), store)


def _told(report: Report, written: WrittenPage, seconds: dict[str, float]) -> Report:
    from onnxsmith.base.report.parts.written_files import Timing, Written
    from onnxsmith.base.words import several

    notes = report.notes
    if written.left_out:
        left = several(written.left_out, "cell")
        notes = (
            *notes,
            f"no report page was written for {left} that ended as done; add --every-cell to write these pages",
        )
    parts = [part for part in report.parts if not isinstance(part, Timing)]
    times = [Timing({**part.seconds, **seconds}) for part in report.parts if isinstance(part, Timing)]
    return replace(report, parts=(*parts, Written(written.files), *times), notes=notes)
