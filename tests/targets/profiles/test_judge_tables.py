"""The tables made by tools/judge_tables: each installed judge is asked again about a sample of what they say."""

from __future__ import annotations

import random
import sys
from functools import cache
from pathlib import Path

import pytest

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.targets.judges.base import Target
from onnxsmith.targets.profiles.condition_result import Outlook
from onnxsmith.targets.profiles.node_acceptance import foresee, worst
from onnxsmith.targets.profiles.profile_reader import by_name

TOOLS = Path(__file__).parents[3] / "tools"
SAMPLE = 60
WRONG = 0.15
"""The share of the sample that may differ. Test cases are odder than networks: on these a table is right in 98 of 100
(docs/benchmarks.md). The table of another judge differs in more, as the last test shows."""
sys.path.insert(0, str(TOOLS))

from judge_tables.cases import (  # noqa: E402  # the tools are no package that is installed
    Case,
    fitted,
    node_cases,
    with_lower_rank,
)
from judge_tables.learning import table  # noqa: E402
from judge_tables.ml_cases import ml_cases  # noqa: E402
from judge_tables.unseen import is_unknown  # noqa: E402


@cache
def _cases() -> list[Case]:
    """The test cases of the onnx package: made at the first question, as they take seconds."""
    return list(node_cases())


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "tract"])
def test_the_judge_still_says_what_its_table_says(name: str) -> None:
    asked, wrong = _differences(name, name)
    assert asked > SAMPLE // 2
    assert len(wrong) <= WRONG * asked, "\n".join(wrong)


def test_the_table_of_another_judge_is_noticed() -> None:
    asked, wrong = _differences("tract", "onnxruntime")
    assert len(wrong) > WRONG * asked


def _differences(name: str, table_of: str) -> tuple[int, list[str]]:
    target = rooms.members("onnxsmith.targets.judges", Target)[name]
    missing = target.missing()
    if missing is not None:
        pytest.skip(missing.what)
    profile = by_name(table_of)
    assert profile is not None
    wrong, asked = [], 0
    with target.judging() as judge:
        for case in random.Random(name).sample(_cases(), SAMPLE):
            outlook = worst(foresee(case.model, profile))
            if outlook is Outlook.UNKNOWN:
                continue
            try:
                refusal = judge.ask(case.model, case.feeds).refusal
            except OnnxsmithError:
                continue
            asked += 1
            if (refusal is None) != (outlook is Outlook.FITS):
                wrong.append(f"{case.name}: {outlook.value}, {refusal}")
    return asked, wrong


def _line(**said: object) -> dict[str, object]:
    plain = {"op": "STFT", "case": "a", "since": 17, "dtypes": {"T1": "float32"}, "operands": ["signal"],
             "results": ["output"], "attributes": {}, "rank": 3, "constants": [], "dynamic": "", "changed": {},
             "taken": True, "why": "", "limit": ""}  # fmt: skip
    return plain | said


def test_a_rank_that_only_refused_forms_have_is_a_condition() -> None:
    said = table([_line(), _line(rank=2, taken=False, why="Impossible to unify 2 with 3.")])
    assert "ranks = { signal = [3] }" in said


def test_an_operator_in_a_branch_that_is_unknown_does_not_make_its_holder_unknown() -> None:
    assert not is_unknown("If", "UNSUPPORTED_NODE: Optional")
    assert is_unknown("Optional", "UNSUPPORTED_NODE: Optional")
    assert is_unknown("ai.onnx.ml::Scaler", "UNSUPPORTED_NODE: Scaler; no importer")


def test_every_case_of_machine_learning_is_of_another_name_and_holds_one_node() -> None:
    cases = list(ml_cases())
    assert len({name for name, _, _ in cases}) == len(cases) == 35
    assert all(len(model.graph) == 1 for _, model, _ in cases)


def test_a_lower_rank_drops_a_last_axis_of_one() -> None:
    case = next(one for one in _cases() if one.node.op_type == "STFT")
    lower = with_lower_rank(case)
    assert lower is not None
    signal = lower.model.graph.inputs[0]
    assert signal.shape is not None
    assert len(signal.shape) == 2 == lower.feeds[signal.name or ""].ndim
    assert next((with_lower_rank(one) for one in _cases() if one.node.op_type == "ReduceSum"), None) is None


def test_a_case_gets_the_versions_that_a_target_reads() -> None:
    case = next(
        one for one in _cases() if one.schema is not None and one.schema.since < one.version and one.version > 13
    )
    assert case.schema is not None
    older: Case = fitted(case, case.schema.since, 7)
    assert (older.model.opset_imports[""], older.model.ir_version) == (case.schema.since, 7)
    assert case.model.opset_imports[""] == case.version
    assert fitted(case, case.schema.since - 1, None).model.opset_imports[""] == case.version
