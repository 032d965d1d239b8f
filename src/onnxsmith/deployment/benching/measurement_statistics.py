"""The statistics of a measurement: quantiles, ratios and their confidence intervals.

A run follows other runs, and a process keeps its memory layout for its whole life: neither runs nor blocks of runs are
independent. Rounds are, each in new processes. So an interval is computed over rounds, from one number a round
(Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM 2013, section 5).

Other processes only ever make a run longer, so that number is taken from the runs that were disturbed least (Chen and
Revels, Robust benchmarking in noisy environments, 2016, who take the minimum). Some rounds are disturbed as a whole, so
the estimate is the median over the rounds, with the interval of the sign test, which assumes no distribution.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LOW = 0.1
"""The quantile of a round's runs that stands for the round. A choice: the minimum is one run, the median of a busy
machine is a disturbed run."""
_INSIDE = 0.99
"""The confidence with which a 95% interval is computed. Measuring stops when the interval is narrow, which happens more
often when it is too narrow by chance: an interval of 95% would then hold the truth less often. A choice, tested with
simulated rounds."""
LEAST_ROUNDS = 8
"""Rounds that a ranking needs: the least whose smallest and largest value enclose the median with 99%."""
FLOOR = 0.005
"""Half width that no interval falls below. Link order and environment move a program's time by such amounts, and do not
change between rounds (Mytkowicz et al., Producing wrong data without doing anything obviously wrong, ASPLOS 2009; they
saw more). A choice."""
BUSY_FLOOR = 0.02
"""The same on a machine that is busy with other processes. A choice."""


@dataclass(frozen=True)
class Interval:
    """A ratio of times and its confidence interval; 1.2 is slower by a fifth."""

    ratio: float
    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Whether 1 lies outside."""
        return not self.low <= 1.0 <= self.high

    @property
    def half_width(self) -> float:
        """Half the width, relative to the ratio: 0.02 is 2%."""
        return (math.log(self.high) - math.log(self.low)) / 2


def low(times: Sequence[float]) -> float:
    """The time that stands for a round."""
    return float(np.quantile(np.asarray(times, dtype=float), LOW))


def of_rounds(logs: Sequence[float], *, floor: float = FLOOR) -> Interval | None:
    """The ratio from its logarithm in each round: the median, and the order statistics that enclose it with the wanted
    confidence (the interval of the sign test: David and Nagaraja, Order Statistics, 7.1). The k-th smallest and k-th
    largest of n values miss the median with the probability 2 P(X < k), X binomial with n and 1/2. None if there are
    too few rounds."""
    count = len(logs)
    k, missed = 0, 0.0
    while missed + 2 * math.comb(count, k) / 2**count <= 1 - _INSIDE:
        missed += 2 * math.comb(count, k) / 2**count
        k += 1
    if count < LEAST_ROUNDS or not k:
        return None
    ordered = sorted(logs)
    return _interval(statistics.median(logs), ordered[k - 1], ordered[-k], floor)


def between(now: Sequence[float], before: Sequence[float], *, floor: float = FLOOR) -> Interval | None:
    """The ratio of times that were measured in separate sessions, from the logarithms of the times in each round: the
    median of all differences, and the interval of the rank sum test (Hodges and Lehmann 1963; Hollander and Wolfe,
    Nonparametric Statistical Methods, 4.3). None if a side has too few rounds."""
    if min(len(now), len(before)) < LEAST_ROUNDS:
        return None
    differences = sorted(a - b for a in now for b in before)
    ways = _rank_sums(len(now), len(before))
    total, k, missed = sum(ways), 0, 0.0
    while missed + 2 * ways[k] / total <= 1 - _INSIDE:
        missed += 2 * ways[k] / total
        k += 1
    return _interval(statistics.median(differences), differences[k - 1], differences[-k], floor)


def _rank_sums(m: int, n: int) -> list[int]:
    """In how many orders of m and n values a value of the first kind exceeds one of the second 0, 1, 2 … times: the
    coefficients of the Gaussian binomial (Mann and Whitney 1947)."""
    ways = [1] + [0] * (m * n)
    for step in range(1, m + 1):
        for at in range(m * n, n + step - 1, -1):  # times 1 - q^(n + step)
            ways[at] -= ways[at - n - step]
        for at in range(step, m * n + 1):  # divided by 1 - q^step
            ways[at] += ways[at - step]
    return ways


def _interval(centre: float, low: float, high: float, floor: float) -> Interval:
    return Interval(math.exp(centre), math.exp(min(low, centre - floor)), math.exp(max(high, centre + floor)))


def percentiles(values: Sequence[float], wanted: Sequence[float]) -> list[float | None]:
    """Quantiles (Hyndman and Fan 1996, type 7, numpy's default). None where a quantile needs more values: p99 says
    nothing about 20 runs. There have to be two values beyond it, a choice."""
    array = np.asarray(values, dtype=float)
    return [
        float(np.quantile(array, share)) if len(array) * (1 - share) >= 2 or share <= 0.5 else None for share in wanted
    ]


def steady(medians: Sequence[float], *, windows: int = 3, within: float = 0.05) -> bool:
    """Whether the last windows agree, which ends a warm-up: the largest of their medians is at most 5% above the
    smallest. After Georges, Buytaert and Eeckhout, Statistically rigorous Java performance evaluation, OOPSLA 2007,
    who use the coefficient of variation of the last runs; medians of windows, because a single run on a shared machine
    may take any time. Number and share are choices."""
    last = medians[-windows:]
    return len(last) == windows and max(last) <= (1 + within) * min(last)
