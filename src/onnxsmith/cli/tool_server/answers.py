"""Makes an answer of a report: a text, and the report as data, both short enough for an agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render import terminal

_TEXT = 16_000
"""Limits the characters of the text. A choice: some 4,000 tokens."""
_DATA = 60_000
"""Limits the characters of the report as JSON. A choice: some 20,000 tokens."""
_ROWS = (200, 100, 50, 20, 10, 5, 2, 1)
"""Limits the entries of a list, and `_CHARACTERS` times as many those of a text: the first of these with which the
report is short enough."""
_CHARACTERS = 100
_RENDERED = 2_000_000
"""Limits the characters of a report, as JSON, that is laid out in tables. A choice: that takes a second."""
_WIDTH = 120
_NAMED = 5
"""Limits the lists that the note names. A choice: one line."""


@dataclass(frozen=True)
class Answer:
    """What a call gives: a text, the report as data, and whether the call failed. A verdict such as `different` is an
    answer, not a failure."""

    text: str
    data: dict[str, Any]
    is_error: bool


def failure(verb: str, problem: Problem) -> Answer:
    """Returns the answer of a call that has no report."""
    return of_report(Report(verb, Verdict.FAILED, problems=(problem,)).to_dict(), removed=False, write=True)


def of_report(report: dict[str, Any], *, removed: bool, write: bool) -> Answer:
    """Returns the answer for a report as plain data. `removed` says that the written file was removed. `write` says
    whether the server can write the whole report to a file."""
    verdict = Verdict(report["verdict"])
    notes = [_UNKEPT] if removed else []
    data, left_out = shortened(report)
    text = _shown(report) if len(_json(report)) <= _RENDERED else "\n".join(_outline(data))
    if left_out:
        notes.append(_shortening(left_out, write=write))
    head = "\n".join([f"verdict: {verdict.value}", *notes])
    server = {"removed": removed, "notes": notes, "left_out": left_out}
    return Answer(f"{head}\n\n{_cut(text)}", {**data, "server": server}, verdict is Verdict.FAILED)


_UNKEPT = (
    "no file was kept, because this server is read-only: the file was verified in a temporary folder and removed; "
    "to keep files, the user starts the server with `onnxsmith mcp --write`"
)


def shortened(report: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the report with at most `_DATA` characters where that is possible, and what was left out: the place of
    each shortened list or text, and how much of it is there."""
    left_out: dict[str, str] = {}
    if len(_json(report)) <= _DATA:
        return report, left_out
    data = report
    for rows in _ROWS:
        left_out = {}
        data = {key: _short(value, rows, key, left_out) for key, value in report.items()}
        if len(_json(data)) + len(_json(left_out)) <= _DATA:
            break
    return data, left_out


def _short(value: Any, rows: int, place: str, left_out: dict[str, str]) -> Any:
    if isinstance(value, str) and len(value) > rows * _CHARACTERS:
        left_out[place] = f"{rows * _CHARACTERS:,} of {len(value):,} characters"
        return value[: rows * _CHARACTERS] + "…"
    if isinstance(value, list):
        most = max(rows, 8) if place in ("problems", "parts") else rows
        if len(value) > most:
            left_out[place] = f"{most:,} of {len(value):,} entries"
        return [_short(one, rows, f"{place}[{index}]", left_out) for index, one in enumerate(value[:most])]
    if isinstance(value, dict):
        names = list(value)
        if len(names) > max(rows, 16):
            left_out[place] = f"{max(rows, 16):,} of {len(names):,} keys"
        return {name: _short(value[name], rows, f"{place}.{name}", left_out) for name in names[: max(rows, 16)]}
    return value


def _shortening(left_out: dict[str, str], *, write: bool) -> str:
    named = "; ".join(f"{place}: {what}" for place, what in list(left_out.items())[:_NAMED])
    more = f"; and {len(left_out) - _NAMED} more places" if len(left_out) > _NAMED else ""
    whole = 'report: ["report.json"] writes the whole report' if write else "ask about one name for the rest"
    return f"the report is shortened ({named}{more}); {whole}"


def _cut(text: str) -> str:
    rest = len(text) - _TEXT
    return text if rest <= 0 else f"{text[:_TEXT]}\n… {rest:,} more characters"


def _shown(report: dict[str, Any]) -> str:
    """Returns the report as a terminal shows it. A report with parts of another package's kind is shown by its
    problems."""
    try:
        return terminal.plain(Report.from_json(json.dumps(report)), _WIDTH)
    except OnnxsmithError:
        return "\n".join(_outline(report))


def _outline(report: dict[str, Any]) -> Iterator[str]:
    for problem in report.get("problems", []):
        yield f"{problem.get('id')}: {problem.get('what')}"
        yield from (f"  {key}: {problem[key]}" for key in ("where", "why", "fix") if problem.get(key))
    yield str(report.get("headline", ""))


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)
