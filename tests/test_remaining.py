"""A stage with a known length says how far it is, and how long it still takes."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from onnxsmith.base.clock import advance
from onnxsmith.cli.render import remaining, stage_lines
from onnxsmith.cli.render.remaining import Remaining

Go = Callable[[float], None]


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Go:
    """Moves the clock on by some seconds."""
    now = [100.0]
    for module in (remaining, stage_lines):
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


def test_the_steps_that_are_left_take_as_long_as_those_that_are_done(go: Go) -> None:
    left = Remaining()
    assert left.words("verify", 0, 12) == "0 of 12"
    go(20)
    assert left.words("verify", 2, 12) == "2 of 12, about 2 min left"
    go(30)
    assert left.words("verify", 11, 12) == "11 of 12, about 5 s left"
    assert left.words("verify", 12, 12) == "12 of 12"


def test_another_stage_or_count_begins_anew(go: Go) -> None:
    left = Remaining()
    left.words("load", 0, 4)
    go(400)
    assert left.words("verify", 2, 4) == "2 of 4", "the time of another stage says nothing"
    go(10)
    assert left.words("verify", 3, 4) == "3 of 4, about 10 s left"
    assert left.words("verify", 0, 4) == "0 of 4"
    assert left.words("verify", 0, 0) == ""


def test_a_long_stage_without_a_terminal_says_how_far_it_is_each_half_minute(go: Go) -> None:
    stream = io.StringIO()
    with stage_lines.written(stream, delay=0):
        for done in range(10):
            advance("fits", done, 10)
            go(20)
    assert stream.getvalue().splitlines() == [
        "onnxsmith: 0 s: fits",
        *(
            f"onnxsmith: {done * 20} s: fits: {done} of 10, about {left} left"
            for done, left in ((2, "3 min"), (4, "2 min"), (6, "80 s"), (8, "40 s"))
        ),
    ]
