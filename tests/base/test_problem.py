"""A problem is told in full, in one order, with nothing empty."""

from __future__ import annotations

import copy
import pickle

import pytest

from onnxsmith.base.problem import OnnxsmithError, Problem, problem


def test_all_details_are_told_in_order() -> None:
    told = str(Problem("model/empty", "the file is empty", "m.onnx", "a write was interrupted", "export it again"))
    assert told == (
        "model/empty: the file is empty\n  where: m.onnx\n  why: a write was interrupted\n  fix: export it again"
    )


def test_empty_details_are_left_out() -> None:
    assert str(Problem("a/b", "it broke", fix="mend it")) == "a/b: it broke\n  fix: mend it"


def test_a_problem_without_details_is_one_line() -> None:
    assert str(Problem("a/b", "it broke")) == "a/b: it broke"


def test_the_error_reads_as_its_problem() -> None:
    error = problem("a/b", "it broke", where="here")
    assert str(error) == str(error.problem) == "a/b: it broke\n  where: here"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])  # noqa: S301
def test_a_copied_error_keeps_its_problem(again: object) -> None:
    error = OnnxsmithError(Problem("a/b", "it broke", "here"))
    copied = again(error)
    assert copied.problem == error.problem
    assert str(copied) == str(error)
