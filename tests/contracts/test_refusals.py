"""Each case that a rule refuses, by its number in the docstring, has a test that names it."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

from onnxsmith.base import rooms
from onnxsmith.optimizer.rules.base import Rule
from tests.refusals import Refusal, named_by

RULES = rooms.members("onnxsmith.optimizer.rules", Rule)
TESTS = Path(__file__).parents[1] / "optimizer" / "rules"


def numbers(rule_id: str) -> list[int]:
    """The numbers of the list below `Refused:`."""
    doc = inspect.getdoc(type(RULES[rule_id])) or ""
    listed = re.search(r"^Refused:\n((?:.+\n)+)", doc, re.MULTILINE)
    return [int(number) for number in re.findall(r"^(\d+)\. ", listed[1], re.MULTILINE)] if listed else []


def proved() -> set[Refusal]:
    modules = [
        importlib.import_module(f"tests.optimizer.rules.{path.stem}") for path in sorted(TESTS.glob("test_*.py"))
    ]
    tests = [value for module in modules for name, value in vars(module).items() if name.startswith("test_")]
    return {refusal for test in tests for refusal in named_by(test)}


def test_refusals_are_counted_from_one() -> None:
    for rule_id in RULES:
        assert numbers(rule_id) == list(range(1, len(numbers(rule_id)) + 1)), rule_id


def test_each_refusal_has_a_test_and_each_number_a_refusal() -> None:
    written = {(rule_id, number) for rule_id in RULES for number in numbers(rule_id)}
    assert len(written) > 150
    assert sorted(written - proved()) == []
    assert sorted(proved() - written) == []
