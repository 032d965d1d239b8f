"""Asks a target about the file that an export or a simplification wrote, and rewrites a file that the target
refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.written_files import Timing, Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Save, Verify
from onnxsmith.deployment.checking.check import check


def checked_afterwards(report: Report, target: str, verify: Verify, save: Save) -> Report:
    """Adds the results of `check --fix` for the written file to the report of a command. A rewritten model replaces the
    file. If no file was written, nothing is asked. Nothing is rewritten without a comparison.

    Raises:
        OnnxsmithError: the errors of `check`.
    """
    files = [Path(name) for part in report.parts if isinstance(part, Written) for name in part.files]
    if not files or not files[0].is_file():
        return report
    found = check(files[0], [target], files[0], fix=True, verify=verify, save=save).report
    parts = [one for one in report.parts if not isinstance(one, Timing)]
    seconds: dict[str, float] = {}
    for one in (*report.parts, *found.parts):
        if isinstance(one, Timing):
            seconds |= {name: seconds.get(name, 0.0) + spent for name, spent in one.seconds.items()}
    # The file was written and agrees, so a target that could not be asked is no failure of the command.
    asked = Verdict.CANNOT_TELL if found.verdict is Verdict.FAILED else found.verdict
    return replace(
        report,
        verdict=asked if report.verdict is Verdict.DONE else report.verdict,
        headline=f"{report.headline}; {found.headline.partition(': ')[2]}",
        parts=(*parts, *(one for one in found.parts if not isinstance(one, Timing)), Timing(seconds)),
        problems=(*report.problems, *found.problems),
        models=(*report.models, *(one for one in found.models if one not in report.models and one.role == "written")),
    )
