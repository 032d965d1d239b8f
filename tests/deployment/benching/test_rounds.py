"""Rounds on simulated subjects: no process, no clock, but drift, disturbances and processes with luck."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from onnxsmith.base.problem import problem
from onnxsmith.deployment.benching import rounds
from onnxsmith.deployment.benching.measurement_statistics import of_rounds
from onnxsmith.deployment.benching.rounds import Pace, measure
from onnxsmith.runtimes._timing import Timer
from onnxsmith.runtimes.base import Options


class Simulated:
    """Stands for `Ready` and for `Opened`. A process is lucky or not, all of them drift together."""

    now = 0.0
    """The simulated time in seconds."""

    def __init__(self, label: str, seconds: float, seed: int, fails_in: int = 0, starts: float = 0.0) -> None:
        self.starts = starts
        self.subject = SimpleNamespace(label=label, options=Options(), file=None)
        self.seconds, self.fails_in, self.opened = seconds, fails_in, 0
        self.random = random.Random(seed)
        self.session = SimpleNamespace(provider="simulated", head={})
        self.load, self.loaded = 0.01, 1000

    def open(self) -> Simulated:
        self.opened += 1
        Simulated.now += self.starts
        self.luck = self.random.gauss(1, 0.01)
        if self.opened == self.fails_in:
            raise problem("runtime/died", f"{self.subject.label} crashed")
        return self

    def hold(self, values: Any) -> Timer:
        self.timer = Timer("in a simulation", self.samples)
        return self.timer

    def samples(self, runs: int, inner: int, budget: float) -> list[int]:
        found: list[int] = []
        end = Simulated.now + budget
        while not found or (len(found) < runs and Simulated.now < end):
            noise = self.random.expovariate(20) if self.random.random() < 0.2 else 0.0
            one = inner * self.seconds * self.luck * (1 + Simulated.now / 50) * (1 + noise)  # all slow down together
            Simulated.now += one
            found.append(round(1e9 * one))
        return found

    def peak(self) -> int:
        return 2000

    def close(self) -> None:
        pass


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "opened", lambda ready: ready.open())
    clock = lambda: Simulated.now  # noqa: E731
    monkeypatch.setattr(rounds, "time", SimpleNamespace(perf_counter=clock, monotonic=clock))
    Simulated.now = 0.0


def measured(*subjects: Simulated, seed: int = 0) -> rounds.Measured:
    return measure(subjects, {}, pace=Pace(2.0), seed=seed, floor=0.005)  # type: ignore[arg-type]


@pytest.mark.usefixtures("simulated")
def test_identical_subjects_are_not_told_apart_in_19_of_20() -> None:
    held = 0
    for seed in range(40):
        found = measured(Simulated("a", 0.001, 2 * seed), Simulated("b", 0.001, 2 * seed + 1), seed=seed)
        interval = of_rounds(found.ratios[0])
        assert interval is not None
        held += not interval.decided
    assert held >= 38


@pytest.mark.usefixtures("simulated")
def test_a_tenth_is_told_apart_in_spite_of_drift() -> None:
    found = measured(Simulated("a", 0.001, 1), Simulated("b", 0.0011, 2))
    interval = of_rounds(found.ratios[0])
    assert interval is not None
    assert interval.decided
    assert interval.ratio == pytest.approx(1.1, rel=0.03)


@pytest.mark.usefixtures("simulated")
def test_a_subject_that_fails_is_left_out() -> None:
    found = measured(Simulated("a", 0.001, 1), Simulated("b", 0.001, 2, fails_in=3), Simulated("c", 0.002, 3))
    assert [one.label for one in found.failed] == ["b"]
    assert [track.ready.subject.label for track in found.tracks] == ["a", "c"]
    assert len(found.ratios) == 1
    assert len(found.ratios[0]) == len(found.tracks[0].lows)


@pytest.mark.usefixtures("simulated")
def test_if_the_first_fails_ratios_are_to_the_next() -> None:
    found = measured(Simulated("a", 0.001, 1, fails_in=2), Simulated("b", 0.001, 2), Simulated("c", 0.002, 3))
    assert [track.ready.subject.label for track in found.tracks] == ["b", "c"]
    interval = of_rounds(found.ratios[0])
    assert interval is not None
    assert interval.ratio == pytest.approx(2, rel=0.05)


@pytest.mark.usefixtures("simulated")
def test_if_all_fail_nothing_is_measured() -> None:
    found = measured(Simulated("a", 0.001, 1, fails_in=1))
    assert not found.tracks
    assert found.failed[0].problem.id == "runtime/died"


@pytest.mark.usefixtures("simulated")
def test_short_runs_are_measured_several_at_a_time() -> None:
    found = measured(Simulated("a", 1e-6, 1))
    assert found.tracks[0].inner >= 5
    assert min(found.tracks[0].times) == pytest.approx(1e-6, rel=0.2)


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("starts", [0.0, 0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("run", [1e-5, 1e-3, 0.3])
def test_ten_seconds_take_about_ten_seconds_a_subject(count: int, starts: float, run: float) -> None:
    """Starts, first runs and warm-ups included. One round is made in any case."""
    subjects = [Simulated(str(number), run, number, starts=starts) for number in range(count)]
    found = measure(subjects, {}, pace=Pace(10.0), seed=0, floor=0.0)  # type: ignore[arg-type]
    rounds_made = len(found.tracks[0].medians)
    a_round = Simulated.now / rounds_made
    assert Simulated.now <= max(10.0 * count + a_round / 2, a_round) + 1e-6
    assert found.total == pytest.approx(Simulated.now)
    assert found.loading == pytest.approx(rounds_made * count * starts)
    assert found.seconds + found.loading == pytest.approx(found.total)


@pytest.mark.usefixtures("simulated")
def test_slow_starts_leave_the_rounds_of_a_ranking() -> None:
    """A start takes a second: eight rounds fit if each is shorter."""
    subjects = [Simulated(str(number), 1e-3, number, starts=1.0) for number in range(2)]
    found = measure(subjects, {}, pace=Pace(10.0), seed=0, floor=0.0)  # type: ignore[arg-type]
    assert len(found.tracks[0].medians) >= 8
    assert found.ended.startswith("the time was used up (")
    assert "of starting processes" in found.ended


@pytest.mark.usefixtures("simulated")
def test_a_coarse_pace_decides_after_eight_rounds_in_kept_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []
    monkeypatch.setattr(rounds._idle, "end_all", lambda: ended.append(True))
    pace = Pace(6.0, of_round=0.1, narrow=0.1, is_fresh=False)
    subjects = [Simulated("a", 0.001, 1), Simulated("b", 0.0015, 2)]
    found = measure(subjects, {}, pace=pace, seed=0, floor=0.005)  # type: ignore[arg-type]
    interval = of_rounds(found.ratios[0])
    assert interval is not None
    assert interval.decided
    assert interval.ratio == pytest.approx(1.5, rel=0.05)
    assert found.ended == "all intervals are narrow"
    assert len(found.tracks[0].medians) == 8
    assert found.seconds < 2
    assert not ended


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(("starts", "patience", "is_enough"), [(0.5, 1.0, False), (0.5, 6.0, True), (9.0, 6.0, False)])
def test_patience_gives_the_rounds_that_an_interval_needs(starts: float, patience: float, is_enough: bool) -> None:
    pace = Pace(2.0, patience=patience)
    found = measure([Simulated("a", 1e-3, 1, starts=starts)], {}, pace=pace, seed=0, floor=0.005)  # type: ignore[list-item]
    assert (len(found.tracks[0].lows) == 8) is is_enough
    assert found.total <= patience * 2.0 + starts
