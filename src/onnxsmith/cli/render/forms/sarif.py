"""`--report report.sarif`: SARIF 2.1.0, which code scanning shows beside the files of a pull request."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.case import Case
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.forms import _subjects
from onnxsmith.cli.render.forms.base import Form
from onnxsmith.cli.render.html_report import View

_VERSION = "2.1.0"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_START = re.compile(
    rb'\{\s*"\$schema": "[^"]*sarif[^"]*",\s*"version": "2\.1\.0",\s*"runs": \[\s*\{\s*"tool": \{\s*"driver": \{'
    rb'\s*"name": "onnxsmith"'
)
"""Matches the beginning of a report in this form."""
_LEVELS = {
    Verdict.DONE: "note",
    Verdict.CANNOT_TELL: "warning",
    Verdict.DIFFERENT: "error",
    Verdict.FAILED: "error",
}
_LINK = re.compile(r"\[(?=[^\]]*\]\()")
"""Finds the bracket of what SARIF would read as a link (SARIF 2.1.0, section 3.11.6)."""


class Sarif(Form):
    """A result for each cause of a problem, and for each problem without causes. Rules are the pages of problems."""

    described = "a report in SARIF"

    def texts(self, report: Report, path: str, view: View | None) -> dict[str, str]:
        results = list(_results(report))
        ids = list(dict.fromkeys(result["ruleId"] for result in results))
        for result in results:
            result["ruleIndex"] = ids.index(result["ruleId"])
        driver = {"name": "onnxsmith", "version": report.version, "rules": [_rule(one) for one in ids]}
        run = {
            "tool": {"driver": driver},
            "automationDetails": {"id": f"onnxsmith/{report.command}/"},  # GitHub wants another for each file
            "invocations": [
                {
                    "executionSuccessful": report.verdict is not Verdict.FAILED,
                    "exitCode": report.verdict.exit_code,
                    "toolExecutionNotifications": [{"message": _message(note)} for note in report.notes],
                }
            ],
            "results": results,
        }
        log = {"$schema": _SCHEMA, "version": _VERSION, "runs": [run]}
        return {path: json.dumps(log, indent=2, allow_nan=False) + "\n"}

    def is_own(self, start: bytes) -> bool:
        return _START.match(start) is not None


def _results(report: Report) -> Iterator[dict[str, Any]]:
    """Yields the results without the index of their rule: one for each cause of a problem, one for a problem without
    causes, and one for each cause that no problem explains, as in a table of many models."""
    told: list[Case] = []
    for problem in report.problems:
        cases = [one for one in _subjects.cases_of(problem, report) if one.what and one not in told]
        told += cases
        yield from _causes(cases, problem, report) if cases else [_of_problem(problem, report)]
    for case in _subjects.cases(report):
        # a case that failed has a problem of its own in most reports
        is_told = case.verdict is Verdict.FAILED and {one.id for one in report.problems}.intersection(case.rules)
        if case.verdict in (Verdict.DIFFERENT, Verdict.FAILED) and case.rules and not is_told and case not in told:
            for what in case.what:
                yield _of_cause(case, what, "")


def _causes(cases: Sequence[Case], problem: Problem, report: Report) -> Iterator[dict[str, Any]]:
    more = "\n".join(f"  {label}: {text}" for label, text in _subjects.without_causes(problem, report).details())
    for case in cases:
        for what in case.what:
            yield _of_cause(case, what, more)


def _of_cause(case: Case, what: str, more: str) -> dict[str, Any]:
    key = f"{case.question}|{what.partition(':')[0]}"
    text = f"{case.name}: {what}" + (f"\n{more}" if more else "")
    return _result(case.rules[0], _LEVELS[case.verdict or Verdict.DONE], text, case.file, key=key, places=[])


def _of_problem(problem: Problem, report: Report) -> dict[str, Any]:
    file, places = _subjects.file_of(problem, report), _subjects.places(problem)
    level = _LEVELS[_subjects.verdict_of(problem, report)]
    key = "|".join(f"{kind} {name}" for kind, name in places)
    return _result(problem.id, level, str(problem), file, key=key, places=places)


def _result(rule: str, level: str, text: str, file: str, *, key: str, places: list[tuple[str, str]]) -> dict[str, Any]:
    """Makes a result. `key` tells apart the results of a rule about a file from run to run."""
    result: dict[str, Any] = {"ruleId": rule, "level": level, "message": _message(text)}
    if file:
        location: dict[str, Any] = {
            # A model has no lines; services that show results beside a line need one.
            "physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": 1}}
        }
        if places:
            location["logicalLocations"] = [{"name": name, "kind": kind} for kind, name in places]
        result["locations"] = [location]
    mark = hashlib.sha256(f"{rule}|{file}|{key}".encode(errors="backslashreplace")).hexdigest()
    result["partialFingerprints"] = {"onnxsmith/v1": mark}
    return result


def _message(text: str) -> dict[str, str]:
    return {"text": _LINK.sub(r"\\[", text)}


def _uri(file: str) -> str:
    """Returns the path relative to the current folder, or as a `file:` address if it lies elsewhere."""
    path = Path(os.path.normpath(Path.cwd() / file))  # links stay as they are: the repository has them
    if path.is_relative_to(Path.cwd()):
        return quote(path.relative_to(Path.cwd()).as_posix(), errors="replace")
    return "file://" + quote(path.as_posix(), errors="replace")


def _rule(id_: str) -> dict[str, Any]:
    """Returns the page of a problem as a rule; the id alone if there is no page."""
    from onnxsmith.viewer.problem_pages import page_title, problem_page

    page = problem_page(id_)
    title, text = page_title(id_, page) or id_, page.partition("\n")[2].strip()
    return {
        "id": id_,
        "shortDescription": {"text": title},
        "fullDescription": {"text": _happened(text) or title},
        "help": {"text": f"onnxsmith explain {id_}\n\n{text}".strip(), "markdown": text or id_},
    }


def _happened(text: str) -> str:
    """Returns the section of a page that says what happened."""
    return text.partition("## What happened")[2].partition("\n## ")[0].strip().replace("\n", " ")
