"""Makes the report of a cell from its row."""

from __future__ import annotations

import json
from collections.abc import Callable

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import ModelFile, Part, Report
from onnxsmith.base.report.parts.fleet import CellStep, CellSteps
from onnxsmith.base.report.parts.step_report import StepReport
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import pasted_words
from onnxsmith.fleet.plan import HERE
from onnxsmith.fleet.row import Outcome, Row, StepResult
from onnxsmith.fleet.run_list import Place


def words(result: StepResult) -> list[str]:
    """Returns the words of a step as they are typed in the plan's folder. Files of the temporary folder get names in
    that folder."""
    return [word.replace("TEMPORARY/", "") for word in result.command]


def _command(result: StepResult) -> str:
    return pasted_words(words(result))


def of_row(
    command: str,
    row: Row,
    place: Place,
    folder: str,
    *,
    whole: bool,
    typed: Callable[[StepResult], str] = _command,
) -> Report:
    """Returns the report of a cell at its place in the table. `folder` is the plan's folder, and `typed` returns the
    shell command of a step. With `whole`, everything that the steps reported follows the table of steps."""
    steps = tuple(
        CellStep(result.verb, typed(result), str(result.outcome), result.headline, result.seconds, result.said)
        for result in row.steps
    )
    parts: list[Part] = [CellSteps(folder, steps)]
    problems: list[Problem] = []
    notes: list[str] = []
    models: list[ModelFile] = []
    for number, result in enumerate(row.steps if whole else (), 1):
        if result.report is None:
            problems += _late(result)
            continue
        try:
            report = Report.from_json(json.dumps(result.report))
        except OnnxsmithError as error:
            notes.append(f"the report of step {number}, {result.verb}, is left out: {error.problem.why}")
            continue
        parts.append(StepReport(number, result.verb, str(report.verdict), report.headline, report.version))
        parts += [part for part in report.parts if part.kind() != "timing"]
        problems += report.problems
        notes += [f"{result.verb}: {note}" for note in report.notes]
        models += [model for model in report.models if model not in models]
    verdict = Verdict.DONE if row.outcome is Outcome.DONE else Verdict.DIFFERENT
    headline = f"{named(place)}: {row.outcome}: {row.headline}"
    return Report(command, verdict, tuple(parts), tuple(problems), tuple(notes), headline, models=tuple(models))


def _late(result: StepResult) -> list[Problem]:
    """Returns the problem of a step that the time limit ended, as it gave no report; none for another end."""
    if result.outcome is not Outcome.TIMEOUT:
        return []
    more = 10 * max(1, round(result.seconds))
    fix = (
        f"allow more time: `time_limit = {more}` in the plan, 0 for no limit; or give a smaller model or smaller inputs"
    )
    return [Problem("runtime/timeout", f"{result.verb} was {result.headline}", fix=fix)]


def named(place: Place) -> str:
    """Returns the name of a cell: its model, its setting, and its environment unless that is the Python that runs the
    fleet."""
    model, setting, environment = place
    return " ".join([model, setting, *([environment] * (environment != HERE))])
