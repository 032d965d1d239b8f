"""Intervals hold what they promise, on simulated rounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from onnxsmith.deployment.benching import measurement_statistics
from onnxsmith.deployment.benching.measurement_statistics import (
    LEAST_ROUNDS,
    Interval,
    between,
    of_rounds,
    percentiles,
    steady,
)
from onnxsmith.deployment.benching.rounds import NARROW

DRAWS = {
    "normal": lambda r: r.normal(0, 0.02),
    "heavy tails": lambda r: 0.01 * r.standard_t(2),
    "disturbed rounds": lambda r: r.normal(0, 0.005) + (r.random() < 0.15) * r.normal(0, 0.2),
}


@pytest.mark.parametrize("name", DRAWS)
def test_an_interval_that_stops_when_narrow_holds_the_truth_in_95_of_100(name: str) -> None:
    random, held = np.random.default_rng(0), 0
    for _ in range(500):
        logs = [DRAWS[name](random) for _ in range(LEAST_ROUNDS)]
        while (found := of_rounds(logs)) is None or (found.half_width > NARROW and len(logs) < 20):
            logs.append(DRAWS[name](random))
        held += not found.decided
    assert held >= 0.95 * 500


def test_a_difference_beyond_the_noise_is_decided() -> None:
    random = np.random.default_rng(1)
    found = of_rounds([math.log(1.1) + random.normal(0, 0.01) for _ in range(8)])
    assert found is not None
    assert found.decided
    assert found.low < 1.1 < found.high


def test_few_rounds_have_no_interval() -> None:
    assert of_rounds([0.1] * (LEAST_ROUNDS - 1)) is None
    assert between([0.1] * 9, [0.1] * (LEAST_ROUNDS - 1)) is None


def test_no_interval_is_narrower_than_the_floor() -> None:
    found = of_rounds([0.0] * 9, floor=0.01)
    assert found == Interval(1.0, pytest.approx(math.exp(-0.01)), pytest.approx(math.exp(0.01)))


def test_one_disturbed_round_moves_neither_ratio_nor_interval_far() -> None:
    logs = [0.2, 0.201, 0.199, 0.2, 0.202, 0.198, 0.2, 0.2, 0.201, 0.199, 0.2, 0.2, 3.0]
    found = of_rounds(logs)
    assert found is not None
    assert found.ratio == pytest.approx(math.exp(0.2), rel=0.01)
    assert found.high < math.exp(0.21)


def test_rank_sums_are_those_of_all_orders() -> None:
    counts = [0] * 13
    for places in itertools.combinations(range(7), 3):
        first = set(places)
        counts[sum(1 for a in first for b in set(range(7)) - first if a > b)] += 1
    assert measurement_statistics._rank_sums(3, 4) == counts


def test_sessions_are_compared_by_all_differences() -> None:
    random = np.random.default_rng(2)
    held = 0
    for _ in range(300):
        found = between(random.normal(0, 0.02, 8), random.normal(0, 0.02, 9))
        held += found is not None and not found.decided
    assert held >= 0.95 * 300
    slower = between(random.normal(0.2, 0.01, 8), random.normal(0, 0.01, 8))
    assert slower is not None
    assert slower.low > 1.1


def test_a_quantile_that_lacks_values_is_unknown() -> None:
    p50, p95, p99 = percentiles(range(60), (0.5, 0.95, 0.99))
    assert (p50, p99) == (29.5, None)
    assert p95 == pytest.approx(56.05)


def test_steady_is_three_windows_that_agree() -> None:
    assert not steady([1.0, 1.0])
    assert not steady([1.0, 1.1, 1.0])
    assert steady([9.0, 1.0, 1.04, 1.0])
