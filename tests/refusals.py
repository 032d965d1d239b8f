"""The refusals that tests prove: each is named by its rule and by its number in the rule's docstring.

A test names one with `@refuses("fuse/gelu", 2)`. Where a table of cases is the test, the names of the cases begin with
the number, and `refusals` hands them to `parametrize`. `tests/contracts/test_refusals.py` holds both to the docstrings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

Refusal = tuple[str, int]
"""A rule and a number."""


def refuses(rule: str, *numbers: int) -> pytest.MarkDecorator:
    """Name the refusals of a rule that a test proves."""
    return pytest.mark.refuses(rule, *numbers)


def refusals(rule: str, cases: Iterable[str]) -> list[Any]:
    """Make parameters of the cases of a table; each is named after the number that it proves: `2: a graph output`."""
    return [pytest.param(case, marks=refuses(rule, int(case.partition(":")[0]))) for case in cases]


def named_by(test: Callable[..., object]) -> set[Refusal]:
    """Collect the refusals that a test function names, itself or by its parameters."""
    marks = list(getattr(test, "pytestmark", []))
    for mark in [mark for mark in marks if mark.name == "parametrize"]:
        marks += [inner for case in mark.args[1] for inner in getattr(case, "marks", ())]
    return {(mark.args[0], number) for mark in marks if mark.name == "refuses" for number in mark.args[1:]}
