"""An answer is short enough for an agent, says what was left out, and fails only if the command failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.tool_server import answers


def report(**more: Any) -> dict[str, Any]:
    found = Report("inspect", Verdict.DONE, problems=(Problem("a/b", "it is so", fix="do this"),), headline="a line")
    return {**found.to_dict(), **more}


@pytest.mark.parametrize("verdict", Verdict)
def test_only_a_failure_is_an_error(verdict: Verdict) -> None:
    found = answers.of_report(report(verdict=verdict.value), removed=False, write=False)
    assert found.is_error is (verdict is Verdict.FAILED)
    assert found.text.startswith(f"verdict: {verdict.value}\n")
    assert "a/b: it is so" in found.text
    assert "a line" in found.text


def test_a_short_report_is_whole() -> None:
    found = answers.of_report(report(), removed=False, write=False)
    assert found.data == {**report(), "server": {"removed": False, "notes": [], "left_out": {}}}


@pytest.mark.parametrize(
    "more",
    [
        {"notes": [f"note {number}" for number in range(50_000)]},
        {"notes": ["x" * 10_000_000]},
        {"parts": [{"kind": "unknown", "rows": [[str(number)] * 9 for number in range(9_000)]}] * 30},
        {"parts": [{"kind": "unknown", "names": {str(number): "x" * 99 for number in range(9_000)}}]},
    ],
    ids=["list", "text", "tables", "keys"],
)
def test_a_long_report_is_shortened_and_says_where(more: dict[str, Any]) -> None:
    found = answers.of_report(report(**more), removed=False, write=True)
    assert len(json.dumps(found.data)) < 2 * 60_000
    assert len(found.text) < 20_000
    assert found.data["server"]["left_out"]
    assert "the report is shortened" in found.text
    assert 'report: ["report.json"] writes the whole report' in found.text
    assert found.data["problems"] == report()["problems"]


def test_counts_of_what_is_there() -> None:
    found, left_out = answers.shortened(report(notes=["x" * 10] * 50_000))
    assert left_out == {"notes": "200 of 50,000 entries"}
    assert len(found["notes"]) == 200


def test_a_removed_file_is_named() -> None:
    found = answers.of_report(report(), removed=True, write=False)
    assert "no file was kept" in found.text
    assert found.data["server"]["removed"] is True
