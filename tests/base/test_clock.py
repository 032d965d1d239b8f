"""Stages are counted once each, and whoever listens is told."""

from __future__ import annotations

import pytest

from onnxsmith.base import clock
from onnxsmith.base.clock import Clock, advance, listening, stage


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Readings that the clock will give, one each time it looks."""
    readings: list[float] = []
    monkeypatch.setattr(clock.time, "perf_counter", lambda: readings.pop(0))
    return readings


def test_a_stage_is_counted_under_its_name(ticks: list[float]) -> None:
    ticks += [10.0, 13.0]
    with Clock() as running, stage("load"):
        pass
    assert running.seconds == {"load": 3.0}


def test_a_stage_inside_a_stage_counts_for_itself_only(ticks: list[float]) -> None:
    ticks += [0.0, 1.0, 5.0, 6.0]
    with Clock() as running, stage("outer"), stage("inner"):
        pass
    assert running.seconds == {"outer": 2.0, "inner": 4.0}


def test_a_stage_that_comes_again_adds_up(ticks: list[float]) -> None:
    ticks += [0.0, 1.0, 5.0, 7.0]
    with Clock() as running:
        for _ in range(2):
            with stage("verify"):
                pass
    assert running.seconds == {"verify": 3.0}


def test_a_stage_inside_one_of_the_same_name_is_not_counted_twice(ticks: list[float]) -> None:
    ticks += [0.0, 1.0, 5.0, 6.0]
    with Clock() as running, stage("a"), stage("a"):
        pass
    assert running.seconds == {"a": 6.0}


def test_a_stage_that_raises_is_counted(ticks: list[float]) -> None:
    ticks += [0.0, 2.0]
    with Clock() as running, pytest.raises(KeyError), stage("load"):
        raise KeyError
    assert running.seconds == {"load": 2.0}


def test_a_clock_inside_a_clock_takes_over_and_gives_back(ticks: list[float]) -> None:
    ticks += [0.0, 1.0, 2.0, 4.0]
    with Clock() as outer:
        with Clock() as inner, stage("a"):
            pass
        with stage("b"):
            pass
    assert (outer.seconds, inner.seconds) == ({"b": 2.0}, {"a": 1.0})


def test_without_a_clock_a_stage_does_nothing(ticks: list[float]) -> None:
    with stage("load"):
        assert not ticks


def test_the_listener_is_told_of_stages_and_progress() -> None:
    told: list[tuple[str, int, int]] = []
    with listening(lambda *event: told.append(event)), stage("load"):
        advance("load", 1, 3)
    advance("load", 2, 3)
    assert told == [("load", 0, 0), ("load", 1, 3)]


def test_what_lies_outside_the_stages_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    clock.command_begins()
    now[0] = 103.0  # imports
    with Clock() as running:
        now[0] = 104.0
        with stage("load"):
            now[0] = 106.0
        passed = running.passed()
    assert passed == {"load": 2.0, "other": 1.0}
    now[0] = 110.0
    assert clock.waited(passed, 100.0) == {"start-up": 3.0, "load": 2.0, "other": 5.0}


def test_a_second_clock_is_no_start() -> None:
    clock.command_begins()
    with Clock():
        pass
    first = clock.waited({}, 0.0)["start-up"]
    with Clock():
        pass
    assert clock.waited({}, 0.0)["start-up"] == first


def test_the_start_of_the_process_is_before_this_module() -> None:
    assert clock.process_began() <= clock._IMPORTED + 0.02  # the kernel counts in hundredths
