"""`tests/work.py`: linear work passes, quadratic work does not."""

from __future__ import annotations

from tests.work import calls, grows_linearly


def step() -> None: ...


def test_calls_are_counted() -> None:
    assert calls(lambda: [step() for _ in range(50)]) - calls(lambda: None) in (50, 51)  # a comprehension is one, too


def test_linear_and_quadratic_work() -> None:
    assert grows_linearly(lambda size: [step() for _ in range(size)], 100)
    assert not grows_linearly(lambda size: [step() for _ in range(size) for _ in range(size)], 20)
