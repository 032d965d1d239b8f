"""Fixes as data: what can be pasted out of a sentence, and how it is shown."""

from __future__ import annotations

import json

import pytest

from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.remedies import Remedy, remedies
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict


@pytest.mark.parametrize(
    ("fix", "expected"),
    [
        ("correct the step", [("words", "correct the step")]),
        ("--tolerance, or --any-runtime if it lacks kernels", [("option", "--tolerance"), ("option", "--any-runtime")]),
        ("add --to int8 --data samples.npz", [("option", "--to int8 --data samples.npz")]),
        ("--input x=bool[1,3], or another size", [("option", "--input x=bool[1,3]"), ("words", "another size")]),
        ("add --no-verify; it is then written", [("option", "--no-verify"), ("words", "it is then written")]),
        ("add --no-verify then", [("option", "--no-verify")]),
        ("leave x:0 out of --dynamic", [("words", "leave x:0 out of --dynamic")]),
        ("do: `onnxsmith dump m; or x`; or stop", [("command", "onnxsmith dump m; or x"), ("words", "stop")]),
        ('--check "refuses onnxruntime"', [("option", '--check "refuses onnxruntime"')]),
        ("replace the line:\n    if x:\n        y = 1, or 2", [("code", "    if x:\n        y = 1, or 2")]),
        ("", []),
    ],
)  # fmt: skip
def test_what_can_be_pasted_is_found(fix: str, expected: list[tuple[str, str]]) -> None:
    assert [(one.kind, one.text) for one in remedies(fix)] == expected


def test_a_fix_says_whether_it_was_tried() -> None:
    assert "fix (not tried): add --force" in str(Problem("a/b", "w", fix="add --force"))
    assert "fix: correct it" in str(Problem("a/b", "w", fix="correct it"))
    one = Problem("a/b", "w", fix="add --force, or --any-runtime, or stop", tried=("--force",))
    assert "fix (tried: --force): add" in str(one)
    both = Problem("a/b", "w", fix="add --force, or stop", tried=("--force",))
    assert "fix (tried): add" in str(both)


def test_code_keeps_its_lines() -> None:
    code = "write there:\nif x:\n    return y"
    assert "\n".join(["  fix (not tried): ", code]) in str(Problem("a/b", "w", fix=code))
    assert Problem("a/b", "w", fix=code).remedies[0].text == "if x:\n    return y"


def test_the_remedies_are_in_the_json_and_are_read_back() -> None:
    made = Report("run", Verdict.FAILED, problems=(Problem("a/b", "w", fix="add --x 1", tried=("--x 1",)),))
    data = json.loads(made.to_json())["problems"][0]
    assert data["remedies"] == [{"kind": "option", "text": "--x 1", "words": "add --x 1", "tried": True}]
    assert Report.from_json(made.to_json()) == made


def test_a_further_place_keeps_what_was_tried() -> None:
    raised = problem("a/b", "w", fix="add --x").at("here", "stop")
    assert raised.problem.remedies == (
        Remedy("option", "--x", "add --x"),
        Remedy("words", "stop", "stop"),
    )
