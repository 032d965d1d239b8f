"""The estimate of the time that is left: on made-up work with heavy tails, as fleets of models have."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

import pytest

from onnxsmith.fleet.remaining import Remaining, Work
from onnxsmith.fleet.run_list import Place

WORKERS = 4


def fleet(seed: int, models: int = 120) -> list[tuple[Work, float]]:
    """Cells with their real seconds. Sizes of models are heavy-tailed; the time of a cell follows from the size, the
    setting, and luck."""
    chance = random.Random(seed)
    settings = {"a": 1.0, "b": 0.2, "c": 3.0}
    cells = []
    for number in range(models):
        size = int(10 ** chance.gauss(7, 0.8))
        of_model = 2 + 30 * (size / 1e8) ** 0.8 * chance.lognormvariate(0, 0.3)
        for setting, factor in settings.items():
            seconds = of_model * factor * chance.lognormvariate(0, 0.2)
            cells.append((Work((f"m{number}", setting, "here"), size), seconds))
    chance.shuffle(cells)
    return cells


def simulated(cells: Sequence[tuple[Work, float]], share: float = 0.1) -> tuple[float, float]:
    """Runs cells on workers that take one after the other. Returns the estimate after a share of them, and the seconds
    that were really left."""
    remaining = Remaining([work for work, _ in cells], WORKERS)
    free = [0.0] * WORKERS
    ends: list[tuple[float, float, Work, float]] = []
    for work, seconds in cells:
        worker = free.index(min(free))
        ends.append((free[worker] + seconds, free[worker], work, seconds))
        free[worker] += seconds
    ends.sort(key=lambda one: one[0])
    done = int(share * len(cells))
    for _, _, work, seconds in ends[:done]:
        remaining.finished(work.place, seconds)
    now = ends[done - 1][0]
    running = {work.place: now - began for end, began, work, _ in ends[done:] if began < now < end}
    estimate = remaining.seconds(running)
    assert estimate is not None
    return estimate, max(free) - now


def test_after_a_tenth_of_the_cells() -> None:
    """Half of the estimates lie within a fifth of the truth."""
    errors = [abs(estimate / real - 1) for estimate, real in (simulated(fleet(seed)) for seed in range(41))]
    assert statistics.median(errors) < 0.2


def test_sizes_help() -> None:
    """Without the sizes of models, the estimates are worse."""

    def error(*, sizes: bool) -> float:
        errors = []
        for seed in range(41):
            cells = [(work if sizes else Work(work.place), seconds) for work, seconds in fleet(seed)]
            estimate, real = simulated(cells)
            errors.append(abs(estimate / real - 1))
        return statistics.median(errors)

    assert error(sizes=True) < error(sizes=False)


def test_an_earlier_run_helps() -> None:
    """This run takes twice as long as the earlier one did."""
    cells = [(Work(work.place, work.bytes, seconds / 2), seconds) for work, seconds in fleet(0)]
    estimate, real = simulated(cells)
    assert estimate == pytest.approx(real, rel=0.1)


def test_it_is_never_negative_and_ends_at_nothing() -> None:
    cells = fleet(1, models=20)
    remaining = Remaining([work for work, _ in cells], WORKERS)
    for work, seconds in cells:
        remaining.finished(work.place, seconds)
        long_ago: dict[Place, float] = {one.place: 1e9 for one, _ in cells}
        for running in ({}, long_ago):
            left = remaining.seconds(running)
            assert left is not None
            assert left >= 0
    assert remaining.seconds() == 0


@pytest.mark.parametrize("workers", [1, 4])
def test_equal_cells(workers: int) -> None:
    places = [(f"m{number}", "s", "here") for number in range(20)]
    remaining = Remaining([Work(place) for place in places], workers)
    assert remaining.seconds() is None
    for place in places[:4]:
        remaining.finished(place, 2.0)
    assert remaining.seconds() == pytest.approx(16 * 2 / workers)
    left = remaining.seconds({places[5]: 1.0, places[6]: 1.0, places[7]: 1.0, places[8]: 1.0})
    assert left == pytest.approx((16 * 2 - 4) / workers)


def test_a_last_long_cell_is_not_shared() -> None:
    remaining = Remaining([Work(("a", "s", "e"), before=1.0), Work(("b", "s", "e"), before=100.0)], 4)
    remaining.finished(("a", "s", "e"), 1.0)
    assert remaining.seconds() == pytest.approx(100.0)


@pytest.mark.parametrize("before", [None, 0.0, 5.0])
def test_cells_that_took_no_time(before: float | None) -> None:
    """A cell that was lost, or that another machine computed meanwhile."""
    places = [(f"m{number}", "s", "here") for number in range(9)]
    remaining = Remaining([Work(place, 100, before) for place in places], 2)
    for place in places[:7]:
        remaining.finished(place, 0.0)
    assert remaining.seconds() is None
    remaining.finished(places[7], 3.0)
    left = remaining.seconds()
    assert left is not None
    assert left >= 0
