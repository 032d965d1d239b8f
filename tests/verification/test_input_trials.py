"""Which inputs are tried on the reference, and when it is given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.input_search import Plan, Run, Tries, has_finite_output, tried
from onnxsmith.verification.inputs.draw_description import Manner
from onnxsmith.verification.inputs.generate import Feed, Generator

MODEL = from_text('<ir_version: 8, opset_import: ["": 17]> g (float[n,k] x) => (float[n,k] y) { y = Neg(x) }')


class _Raises(Session):
    """A session that raises problems of these ids in turn; "" answers."""

    provider = "tests"
    signature = signature(MODEL)

    def __init__(self, *ids: str) -> None:
        self.ids = list(ids)

    def run(self, feeds: Mapping[str, Any]) -> Outputs:
        name = self.ids.pop(0)
        if name:
            raise problem(name, "it went wrong", where="here")
        return {"y": -feeds["x"]}


def tries(*ids: str, **plan: Any) -> Tries:
    return Tries(_Raises(*ids), Plan(Generator.for_model(MODEL), **plan))


def attempt(these: Tries, n: int, k: int) -> bool:
    return these.run({"n": n, "k": k}, 0, {}, Manner()) is not None


def test_what_was_taken_and_refused_is_counted() -> None:
    these = tries("", "runtime/failed", "")
    assert [attempt(these, size, 3) for size in (2, 4, 5)] == [True, False, True]
    assert these.outcomes == [({"n": 2, "k": 3}, True), ({"n": 4, "k": 3}, False), ({"n": 5, "k": 3}, True)]
    assert these.refused == 1
    assert these.last is not None
    assert these.last.what == "it went wrong"


def test_the_twelfth_crash_is_passed_over_and_the_thirteenth_is_not() -> None:
    these = tries(*["runtime/died"] * 13)
    for size in range(1, 13):
        assert not attempt(these, size, 100 - size)  # no size is within that of another crash
    assert len(these.crashed) == 12
    with pytest.raises(OnnxsmithError) as caught:
        attempt(these, 13, 80)
    assert caught.value.problem.where.startswith("here; input ")


def test_sizes_that_crashed_are_not_tried_again_nor_smaller_ones_after_three_crashes() -> None:
    these = tries("runtime/died", "runtime/died", "", "runtime/died", "")
    for sizes in ((5, 9), (9, 5)):
        assert not attempt(these, *sizes)
    assert not attempt(these, 5, 9)  # the same: not asked again
    assert these.hopeless == 1
    assert attempt(these, 4, 8)  # smaller than one that crashed, but two crashes are few
    assert not attempt(these, 6, 6)
    for sizes in ((5, 5), (6, 6), (2, 9)):
        assert not attempt(these, *sizes)
    assert these.hopeless == 4
    assert attempt(these, 6, 7)
    assert these.refused == 3  # the crashes; what was not asked is not refused


@pytest.mark.parametrize("first", ["", "given", None])
def test_two_late_answers_are_passed_over_if_it_has_answered_before(first: str | None) -> None:
    given = (Feed("given", {}, {}),) if first == "given" else ()
    these = tries(*([""] if first == "" else []), *["runtime/timeout"] * 3, given=given)
    if first == "":
        assert attempt(these, 1, 1)
    if first is not None:
        assert not attempt(these, 2, 2)
        assert not attempt(these, 3, 3)
        assert len(these.late) == 2
        assert not these.crashed
    with pytest.raises(OnnxsmithError):
        attempt(these, 4, 4)


def test_an_input_of_more_than_sixteen_million_elements_is_not_made() -> None:
    these = tries("", "")
    assert not attempt(these, 4096, 4097)
    assert (these.too_large, these.refused, these.outcomes) == (1, 0, [])
    assert attempt(these, 4096, 4096)  # 2^24
    asked = tries("", known={"n": 4096}, start={"k": 4097})
    assert attempt(asked, 4096, 4097)  # the user asked for it
    assert asked.too_large == 0


@pytest.mark.parametrize(
    ("value", "is_finite"),
    [
        (np.array([np.nan, 1.0]), True),
        (np.array([np.nan, np.inf]), False),
        (np.array([]), False),
        (np.array([1, 2]), True),
        (np.array(["a"]), True),
        (None, False),
        ([], False),
        ([np.array([np.nan]), np.array([0.0])], True),
        ([np.array([np.nan])], False),
    ],
)
def test_an_output_with_a_number(value: Any, is_finite: bool) -> None:
    assert has_finite_output({"y": value}) == is_finite
    assert has_finite_output({"y": value, "z": np.zeros(1)})


def test_sizes_are_listed_once_in_order() -> None:
    runs = [Run(Feed("any", {"n": n, "k": 1}, {}), {}) for n in (5, 2, 5, 0)]
    assert tried(runs) == {"n": (0, 2, 5), "k": (1,)}
    assert [run.is_empty for run in runs] == [False, False, False, True]
