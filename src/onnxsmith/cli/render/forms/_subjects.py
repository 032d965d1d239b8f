"""Finds the model file, and the nodes and tensors in it, that a problem of a report is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.case import Case
from onnxsmith.base.report.verdict import Verdict

_NAMED = re.compile(r"\b(node|tensor|input|output|initializer|function)s? ('[^']*'|\"[^\"]*\"|[^\s,;:'\"]+)")
"""Finds names in the place of a problem: `tensor 'w'`, `node Conv_3`."""


_NODE = re.compile(r"[A-Z][A-Za-z0-9]+ ([^\s:]+)")
"""Matches a node by its operator and name: `MatMul node_a`."""


def cases(report: Report) -> list[Case]:
    """Returns the cases of all parts."""
    return [case for part in report.parts for case in part.cases()]


def cases_of(problem: Problem, report: Report) -> list[Case]:
    """Returns the cases that the problem explains: those of its id about its model."""
    file = file_of(problem, report)
    return [one for one in cases(report) if problem.id in one.rules and one.file == file]


def without_causes(problem: Problem, report: Report) -> Problem:
    """Returns the problem without its reason, if the cases that it explains say the same: forms that show the cases
    would say it twice."""
    causes = [what for case in cases_of(problem, report) for what in case.what]
    rest = problem.why
    for what in sorted({text for one in causes for text in (one, one.partition(": ")[2])}, key=len, reverse=True):
        rest = rest.replace(what, "") if what else rest
    return problem if not causes or rest.strip("; ") else replace(problem, why="")


def verdict_of(problem: Problem, report: Report) -> Verdict:
    """Returns the verdict that the problem stands for: that of its cases, else that of the report."""
    return next((one.verdict for one in cases_of(problem, report) if one.verdict is not None), report.verdict)


def file_of(problem: Problem, report: Report) -> str:
    """Returns the path of the file that the problem is about: the model that the problem names, the file at its place,
    or the first model of the report; "" if there is none."""
    text = f"{problem.what}\n{problem.where}"
    found = [(len(name), file) for name, file in _known(report) if _stands_in(name, text)]
    if found:
        return max(found)[1]
    place = problem.where.partition(",")[0].strip()
    if place and "\0" not in place and len(place) < 255 and Path(place).is_file():
        return place
    return next((one.path for one in report.models), next((one.file for one in cases(report)), ""))


def places(problem: Problem) -> list[tuple[str, str]]:
    """Returns the kind and the name of each node and tensor that the place of a problem names."""
    named = [(kind, name.strip("'\"")) for kind, name in _NAMED.findall(problem.where)]
    nodes = [match[1] for piece in problem.where.split(", ") if (match := _NODE.fullmatch(piece))]
    return [*named, *(("node", name) for name in nodes)]


def _known(report: Report) -> Iterator[tuple[str, str]]:
    """Yields the names of models in a report, each with the path of its file."""
    for case in cases(report):
        yield case.name, case.file
        yield case.file, case.file
    for model in report.models:
        yield model.path, model.path


def _stands_in(name: str, text: str) -> bool:
    """Whether a path stands in a text by itself, and not as a part of a longer one."""
    return bool(name) and re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)", text) is not None
