"""`--report report.xml`: JUnit XML, which CI services show as tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from onnxsmith.base.printable import below, one_line, printable
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.forms import _subjects
from onnxsmith.cli.render.forms.base import Form
from onnxsmith.cli.render.html_report import View

_START = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NAME = "onnxsmith"


@dataclass(frozen=True)
class _Test:
    """A test case. `kind` is the element that says how it ended: `failure`, `error`, `skipped`, or "" if it passed."""

    subject: str
    name: str
    kind: str = ""
    type: str = ""
    message: str = ""
    text: str = ""


_KINDS = {
    Verdict.DONE: "",
    Verdict.DIFFERENT: "failure",
    Verdict.CANNOT_TELL: "failure",
    Verdict.FAILED: "error",
    None: "skipped",
}
"""Maps a verdict to the element of a test case. The type of a failure is the verdict."""


class Xml(Form):
    """A test suite for the command, and a test case for each question about each model."""

    described = "a report in JUnit XML"

    def texts(self, report: Report, path: str, view: View | None) -> dict[str, str]:
        tests = list(_tests(report))
        counts = {"tests": str(len(tests))} | {
            f"{kind}s".replace("skippeds", "skipped"): str(sum(one.kind == kind for one in tests))
            for kind in ("failure", "error", "skipped")
        }
        root = ElementTree.Element("testsuites", {"name": _NAME, **counts})
        suite = ElementTree.SubElement(root, "testsuite", {"name": f"{_NAME} {report.command}", **counts})
        for test in tests:
            case = ElementTree.SubElement(suite, "testcase", _attributes(classname=test.subject, name=test.name))
            if test.kind:
                about = _attributes(message=test.message, type=test.type) if test.kind != "skipped" else {}
                ElementTree.SubElement(case, test.kind, about).text = printable(test.text)
        output = ElementTree.SubElement(suite, "system-out")
        notes = [f"note: {below(note)}" for note in report.notes]
        output.text = printable("\n".join([*notes, one_line(report.headline)]))
        ElementTree.indent(root)
        return {path: _START + ElementTree.tostring(root, encoding="unicode") + "\n"}

    def is_own(self, start: bytes) -> bool:
        return start.startswith(f'{_START}<testsuites name="{_NAME}"'.encode())


def _attributes(**values: str) -> dict[str, str]:
    return {name: printable(value).replace("\n", " ") for name, value in values.items()}


def _tests(report: Report) -> Iterator[_Test]:
    """Yields a test for each case, then one for each problem that no case has. Without cases, the command is one
    test."""
    cases = _subjects.cases(report)
    if not cases:
        subject = " and ".join(dict.fromkeys(one.path for one in report.models)) or report.command
        verdict = report.verdict
        yield _Test(subject, report.command, _KINDS[verdict], verdict.value, report.headline, _shown(report.problems))
        return
    told: list[Problem] = []
    failed = False
    for case in cases:
        kind = _KINDS[case.verdict]
        problems = [one for one in report.problems if case in _subjects.cases_of(one, report)]
        if case.verdict is Verdict.FAILED:
            problems = [one for one in report.problems if _subjects.file_of(one, report) == case.file]
        told += problems
        failed = failed or kind in ("failure", "error")
        message = "; ".join(case.what) or (problems[0].what if problems else "")
        shown = [_subjects.without_causes(one, report) for one in problems]
        text = "\n".join([*case.what, _shown(shown)]).strip()
        yield _Test(case.name, case.question, kind, case.verdict.value if case.verdict else "", message, text)
    rest = [one for one in report.problems if one not in told]
    if rest or (report.verdict is not Verdict.DONE and not failed):
        verdict = report.verdict
        yield _Test(f"{_NAME} {report.command}", report.command, _KINDS[verdict], verdict.value, report.headline,
                    _shown(rest))  # fmt: skip


def _shown(problems: tuple[Problem, ...] | list[Problem]) -> str:
    """Returns the problems as a terminal shows them."""
    return "\n".join(map(str, problems))
