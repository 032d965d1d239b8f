"""Pages are found by id; a wrong id is answered with close ones."""

from __future__ import annotations

import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.explanations import Page
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.explain import Explain
from onnxsmith.viewer.inspection.explain import explain


def test_a_problem_has_its_page() -> None:
    report = explain("model/truncated")
    assert report.verdict is Verdict.DONE
    assert report.headline == "the file ends early"
    text = report.part(Page).text
    assert text.startswith("# model/truncated: the file ends early\n")
    assert "## What helps" in text
    assert Report.from_json(report.to_json()) == report


def test_a_rule_has_its_docstring() -> None:
    report = Explain("fuse/conv-batchnorm").run()
    assert "BatchNormalization" in report.part(Page).text
    assert "Before:" in report.part(Page).text
    assert "BatchNormalization" in report.headline


def test_all_lists_every_id_with_its_first_line() -> None:
    text = explain("all").part(Page).text
    assert "model/truncated: the file ends early" in text.splitlines()
    assert any(line.startswith("fuse/conv-batchnorm: ") for line in text.splitlines())


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [("model/truncatd", "model/truncated"), ("truncated", "model/truncated"), ("FROZEN", "export/frozen-axis")],
)
def test_an_unknown_id_suggests_close_ones(asked: str, suggested: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        explain(asked)
    assert caught.value.problem.id == "explain/unknown-id"
    assert suggested in caught.value.problem.fix


@pytest.mark.parametrize("asked", ["", " \n "])
def test_an_empty_text_says_how_to_give_one(asked: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        explain(asked)
    assert caught.value.problem.id == "explain/nothing-given"
    assert "onnxsmith explain - < log.txt" in caught.value.problem.fix


@pytest.mark.parametrize("asked", ["zzz/qqq", "../problem", "model"])
def test_other_ids_say_where_the_list_is(asked: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        explain(asked)
    assert caught.value.problem.fix


def test_long_words_are_shortened() -> None:
    """A pattern looks for its end from each character of a word."""
    from onnxsmith.viewer.inspection import cause_matching

    (line,) = cause_matching._lines("x" * 100_000)
    assert len(line) < 1_000
