"""Says in one line why a step ended as it did, from its report or from the end of its process."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import shortened

_LONGEST = 2000
"""Limits the characters of a reason in a row. A choice: a page; a terminal shows less."""
_CRASH = "Fatal Python error: "
"""Begins what Python's faulthandler prints when a process crashes: the stack of each thread."""
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')
"""Finds a frame of such a stack. The innermost frame comes first."""
_LIBRARY = re.compile(
    r"^<|[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/]python3[.\d]*[\\/]|[\\/]src[\\/]onnxsmith[\\/]|Python3\d+[\\/]Lib[\\/]"
)
"""Finds files of libraries, of Python and of onnxsmith in such a stack: the others are the user's."""


def of_report(report: Mapping[str, Any]) -> str:
    """Returns why the verdict of a report, as plain data, is what it is: for numbers that differ, which output and by
    how much; for an error, its problem with its cause. The headline of the report says it in all other cases."""
    verdict, headline = str(report["verdict"]), str(report.get("headline") or "")
    if verdict != Verdict.DONE:
        found = next(filter(None, _reasons(report, verdict)), "")
        first = next((str(one["what"]) for one in _tables(report.get("problems")) if one.get("what")), verdict)
        return shortened(found or headline or first, _LONGEST)
    return headline or verdict


def is_refusal(report: Mapping[str, Any]) -> bool:
    """Whether the verdict `different` of a report, as plain data, says that targets do not take the model, and not that
    numbers differ."""
    checks = list(_entries(_tables(report.get("parts")), "target_checks", "checks"))
    refused = any(one.get("stage") == Stage.REFUSED or one.get("changed") for one in checks)
    return refused and not any(map(_differs, checks))


def _differs(check: Mapping[str, Any]) -> bool:
    """Whether a target runs the model and gives other numbers."""
    return bool(check.get("differs"))


def of_problem(what: str, why: str) -> str:
    """Returns what happened, with the first line of its cause."""
    cause = why.strip().partition("\n")[0]
    return shortened(f"{what}: {cause}" if cause else what, _LONGEST)


def of_end(cause: str, said: str) -> str:
    """Returns how a process ended that gave no report, and in which Python function if `said` has the stack of a crash.
    The last line that it printed may be the reason or not, so it is shown as what it is."""
    ending = f"{cause} without a report" if cause.startswith("exit status") else cause
    printed, _, stack = said.partition(_CRASH)
    if frame := _frame(stack.partition("Current thread")[2].partition("\n\n")[0]):
        ending += f" in {frame[3]} ({frame[1]}, line {frame[2]})"
    last = next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")
    return f"{ending}; last line printed: {shortened(last, _LONGEST)}" if last else ending


def _frame(stack: str) -> re.Match[str] | None:
    """Returns the frame of a stack that tells most: the innermost one of the user's own code, else the innermost."""
    frames = list(_FRAME.finditer(stack))
    return next((frame for frame in frames if not _LIBRARY.search(frame[1])), frames[0] if frames else None)


def _reasons(report: Mapping[str, Any], verdict: str) -> Iterator[str]:
    problems = [one for one in _tables(report.get("problems")) if one.get("what")]
    parts = _tables(report.get("parts"))
    if verdict == Verdict.FAILED and problems:
        yield of_problem(str(problems[0]["what"]), str(problems[0].get("why") or ""))
    if verdict == Verdict.DIFFERENT:
        yield from map(_output, _entries(parts, "verification", "outputs"))
    yield from _targets(_entries(parts, "target_checks", "checks"))


def _targets(checks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields why targets did not take a model, or do not agree. A target that was not asked says nothing."""
    asked = [one for one in checks if one.get("why") and one.get("stage") != Stage.NOT_TRIED]
    for one in sorted(asked, key=lambda one: (not _differs(one), one.get("stage") != Stage.REFUSED)):
        yield f"{one.get('target')}: {one['why']}"


def _entries(parts: list[Mapping[str, Any]], kind: str, name: str) -> Iterator[Mapping[str, Any]]:
    """Yields the entries of a list in the parts of a kind."""
    return (entry for part in parts if part.get("kind") == kind for entry in _tables(part.get(name)))


def _tables(value: Any) -> list[Mapping[str, Any]]:
    """Returns the tables of a list. Another version of onnxsmith may have written anything."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _output(check: Mapping[str, Any]) -> str:
    """Returns how an output differs; "" if it does not."""
    if check.get("equal", True) or check.get("drawn"):
        return ""
    text = f"output {check.get('name')!r} differs: {check.get('reason') or 'its values are not equal'}"
    difference, tolerance = check.get("worst_rel"), check.get("tolerance")
    numbers = [one for one in (difference, tolerance) if isinstance(one, int | float) and math.isfinite(one)]
    if len(numbers) < 2 or not difference:
        return text
    return f"{text}; the largest difference is {difference:.3g} of its scale, the tolerance {tolerance:.3g}"
