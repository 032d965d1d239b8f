"""A report goes to JSON and back equal; anything else is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Facts, Report, facts
from onnxsmith.base.report.parts.explanations import Page
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from tests.conftest import Refused

FULL = Report(
    "export",
    Verdict.DIFFERENT,
    parts=(Page("a/b", "Straße → ☃"), Timing({"load": 1.5})),
    problems=(Problem("a/b", "it broke", where="here"),),
    notes=("one", "two"),
    headline="done, but not equal",
)


def without(key: str) -> Any:
    data = FULL.to_dict()
    del data[key]
    return data


def test_a_report_comes_back_equal() -> None:
    assert Report.from_json(FULL.to_json()) == FULL


@given(st.dictionaries(st.text(), st.floats(allow_nan=False)))
def test_every_float_comes_back(seconds: dict[str, float]) -> None:
    part = Report.from_json(Report("x", Verdict.DONE, parts=(Timing(seconds),)).to_json()).part(Timing)
    assert part.seconds == seconds


def test_not_a_number_comes_back() -> None:
    report = Report("x", Verdict.DONE, parts=(Timing({"a": math.nan}),))
    assert math.isnan(Report.from_json(report.to_json()).part(Timing).seconds["a"])


def test_json_is_strict() -> None:
    report = Report("x", Verdict.DONE, parts=(Timing({"a": math.nan, "b": -math.inf}),))

    def refuse(word: str) -> None:
        raise AssertionError(word)

    seconds = json.loads(report.to_json(), parse_constant=refuse)["parts"][0]["seconds"]
    assert seconds == {"a": "nan", "b": "-inf"}


@pytest.mark.parametrize(
    "data",
    [
        *[without(key) for key in FULL.to_dict() if key != "models"],  # which earlier versions did not write
        FULL.to_dict() | {"models": [{"path": "m.onnx"}]},
        FULL.to_dict() | {"schema": 2},
        FULL.to_dict() | {"schema": "1"},
        FULL.to_dict() | {"schema": True},
        FULL.to_dict() | {"verdict": "fine"},
        FULL.to_dict() | {"notes": "abc"},
        FULL.to_dict() | {"notes": [5]},
        FULL.to_dict() | {"headline": None},
        FULL.to_dict() | {"problems": [5]},
        FULL.to_dict() | {"problems": [{"id": "a/b"}]},
        FULL.to_dict() | {"parts": [5]},
        FULL.to_dict() | {"parts": [{"kind": "nobody-knows-it"}]},
        FULL.to_dict() | {"parts": [{"kind": ["page"]}]},
        FULL.to_dict() | {"parts": [{"kind": "page", "id": "a/b"}]},
        [],
        "text",
        5,
        None,
    ],
)
def test_other_json_is_unreadable(data: object, refused: Refused) -> None:
    with refused("report/unreadable"):
        Report.from_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, FULL.to_json()[:-3]])
def test_what_is_no_json_is_unreadable(text: str, refused: Refused) -> None:
    with refused("report/unreadable"):
        Report.from_json(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(OnnxsmithError):
        Report.from_json(text)


def test_a_part_is_found_by_its_class() -> None:
    assert FULL.part(Page).id == "a/b"


def test_a_part_that_is_not_there_is_a_lookup_error() -> None:
    with pytest.raises(LookupError, match="Timing"):
        Report("x", Verdict.DONE).part(Timing)


@pytest.mark.parametrize(("verdict", "code"), [("done", 0), ("different", 1), ("failed", 2)])
def test_the_verdict_gives_the_exit_code(verdict: str, code: int) -> None:
    assert Verdict(verdict).exit_code == code


def test_facts_leave_out_what_is_empty() -> None:
    assert facts([("a", 0), ("b", None), ("c", ""), ("d", False)]) == Facts((("a", "0"), ("d", "False")))
